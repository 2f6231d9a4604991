/* hog MB COMMAND...: run a command while all but MB megabytes of the device are taken. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    size_t now = 0, all, leave = argc > 2 ? (size_t)atol(argv[1]) << 20 : 0;
    void *p;
    if (argc < 3 || cudaMemGetInfo(&now, &all) != cudaSuccess)
        return 2;
    for (size_t step = (size_t)1 << 30; step >= (size_t)1 << 20; step /= 2)
        while (now > leave + step && cudaMalloc(&p, step) == cudaSuccess)
            cudaMemGetInfo(&now, &all);
    printf("# %zu MB of device memory left\n", now >> 20);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
