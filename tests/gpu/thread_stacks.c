/* Loaded into a process, makes each thread write its native stack to standard error on SIGUSR2: pieces.py sends that
 * to the threads of a test that hangs, before it ends the process. It needs no debugger. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int out; /* the original standard error: pytest replaces it while it captures */

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
    backtrace(&frame, 1); /* loads its dependencies now, which a signal handler must not do */
    memset(&action, 0, sizeof action);
    action.sa_handler = &write_stack;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR2, &action, NULL);
}
