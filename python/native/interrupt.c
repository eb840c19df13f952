/* Ctrl-C for calls from Python. Python's own handler only takes a note, which the interpreter reads after the call. For
 * the time of a call on the main thread this handler takes its place and sets the interrupt flag of the context. */
#include <signal.h>
#include <stddef.h>

#pragma GCC visibility push(default)
volatile int *spgraph_interrupt_begin(volatile int *flag);
void spgraph_interrupt_end(volatile int *outer);
#pragma GCC visibility pop

static volatile int *volatile current; /* the flag of the innermost call */
static struct sigaction before;

static void set_flag(int number)
{
    (void)number;
    volatile int *flag = current;
    if (flag) *flag = 1;
}

/* Returns what spgraph_interrupt_end wants: the flag of the call around this one, if a callback makes it. */
volatile int *spgraph_interrupt_begin(volatile int *flag)
{
    volatile int *outer = current;
    current = flag;
    if (!outer) {
        struct sigaction own = {.sa_handler = set_flag, .sa_flags = SA_RESTART};
        sigemptyset(&own.sa_mask);
        sigaction(SIGINT, &own, &before);
    }
    return outer;
}

void spgraph_interrupt_end(volatile int *outer)
{
    if (!outer) sigaction(SIGINT, &before, NULL);
    current = outer;
}
