#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

// linux/ioprio.h and linux/close_range.h, which C libraries of 2022 do not have.
#define IOPRIO_PROCESS 1
#define IOPRIO_IDLE (3 << 13)
#define CLOSE_ON_EXEC (1u << 2)

/// What the child does before it becomes the program. It shares the memory of its parent (vfork), so it only makes system calls.
static int become(
    const char *program, char *const arguments[], char *const environment[], const char *folder, int output, int errors,
    uint64_t memory, pid_t parent) {
    struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++) sigaction(number, &standard, NULL);
    // It ends with the server, however that ends.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) return errno ? errno : ECANCELED;
    // Ctrl-C in a terminal is for the server, which then ends the child.
    setpgid(0, 0);
    setpriority(PRIO_PROCESS, 0, 19);
    struct sched_param none = {0};
    sched_setscheduler(0, SCHED_IDLE, &none);
    syscall(SYS_ioprio_set, IOPRIO_PROCESS, 0, IOPRIO_IDLE);
    struct rlimit limit = {memory, memory}, no = {0, 0};
    if (memory) setrlimit(RLIMIT_AS, &limit);
    setrlimit(RLIMIT_CORE, &no);
    // If memory runs out, it is killed before the server.
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (score >= 0) {
        ssize_t ignored = write(score, "1000", 4);
        (void)ignored;
    }
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input < 0 || dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0 || chdir(folder) != 0)
        return errno;
    syscall(SYS_close_range, 3, ~0U, CLOSE_ON_EXEC);
    sigset_t signals;
    sigemptyset(&signals);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    execve(program, arguments, environment);
    return errno;
}

/// Ends a child that could not become the program, as shells do, with the reason on its standard error. The reason is not passed in a variable of the parent: a
/// replacement of vfork (ThreadSanitizer uses fork) gives the child only a copy.
static void give_up(int code, int errors) {
    static char begin[] = "cannot begin: ";
    char *reason = (char *)strerrordesc_np(code);
    struct iovec words[] = {{begin, sizeof begin - 1}, {reason, reason ? strlen(reason) : 0}};
    ssize_t ignored = writev(errors, words, 2);
    (void)ignored;
    _exit(127);
}

pid_t clinux_spawn_idle(
    const char *program, char *const arguments[], char *const environment[], const char *folder, int output, int errors,
    uint64_t memory) {
    sigset_t all, former;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &former);
    pid_t parent = getpid();
    // Not fork, which copies the server's page tables, so that the next writes of each of its threads become slower.
    pid_t child = vfork();
    if (child == 0) give_up(become(program, arguments, environment, folder, output, errors, memory, parent), errors);
    int code = errno;
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    errno = code;
    return child;
}

int clinux_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

int clinux_exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : -1; }
