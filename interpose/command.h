/* What the commands share: how they complain. */
#ifndef COMMAND_H
#define COMMAND_H

/* Print a message under the command's name and return `code`. */
int complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *must(void *memory); /* exits with 2 when there is none */

#endif
