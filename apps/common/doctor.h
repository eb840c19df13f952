/* --doctor of a tool. */
#ifndef DOCTOR_H
#define DOCTOR_H

/* What the tool finds on this machine, on stdout; `blas`: what it says of BLAS; `large`: from when on "auto" takes a
 * GPU. */
void doctor_print(const char *tool, const char *blas, const char *large);

#endif
