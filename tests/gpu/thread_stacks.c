/* Loaded into a process, lets each of its threads write its native stack to standard error on SIGUSR2: pieces.py asks the
 * threads of a test that does not end, before it ends the process. Where no debugger is, and none is needed. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int out; /* standard error as it was: pytest has another one while it captures */

static void write_stack(int number) {
    void* frames[48];
    char head[64];
    const int length = snprintf(head, sizeof head, "thread %ld:\n", syscall(SYS_gettid));
    (void)number;
    if (write(out, head, (size_t)length) < 0) return;
    backtrace_symbols_fd(frames, backtrace(frames, 48), out);
}

__attribute__((constructor)) static void listen_for_questions(void) {
    void* frame;
    struct sigaction action;
    out = dup(2);
    backtrace(&frame, 1); /* loads what it needs, which a signal's handler must not */
    memset(&action, 0, sizeof action);
    action.sa_handler = &write_stack;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR2, &action, NULL);
}
