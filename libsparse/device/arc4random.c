/* arc4random for static libstdc++, so that what is linked here runs on systems with glibc 2.34.
 *
 * CUDA code needs libstdc++, which is linked statically. Its std::random_device asks for arc4random if the compiler was
 * built beside glibc 2.36 or newer, and that file comes along with the strings of its exceptions. So every library and
 * program would import arc4random@GLIBC_2.36 and not load on RHEL 9 (2.34) or Ubuntu 22.04 (2.35), although nobody
 * calls it. This hidden function stands in its place; the Makefile links it into CUDA builds only. */
#include <stdint.h>
#include <unistd.h>

uint32_t arc4random(void);

uint32_t arc4random(void)
{
    uint32_t number;
    while (getentropy(&number, sizeof number)) {} /* callers expect no failure; Linux has none since 3.17 */
    return number;
}
