/* Makes a server of a program that reads one file twice, first to see what it is: loaded ahead of the C library.

Before it reads the file again, a program that has set itself up goes on in the background, and forks for each path
that it is sent through FORK_SERVER_SOCKET: the fork reads that file instead and prints to the socket, and a last byte
says whether it ended well.  The server ends with the process FORK_SERVER_OWNER. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char input[4096];

/* Returns in a fork, with its path in `input`. */
static void serve(const char *place, pid_t owner)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strncpy(address.sun_path, place, sizeof address.sun_path - 1);
    if (bind(listening, (struct sockaddr *)&address, sizeof address) || listen(listening, 64)) _exit(1);
    if (fork()) _exit(0); /* it can be asked now: what started the program need not wait any longer */
    setsid();
    for (;;) {
        struct pollfd asked = {listening, POLLIN, 0};
        int any = poll(&asked, 1, 500);
        if (kill(owner, 0)) _exit(0);
        if (any < 1) continue;
        int client = accept(listening, 0, 0);
        ssize_t length = recv(client, input, sizeof input - 1, 0);
        pid_t child = length > 0 ? fork() : -1;
        if (child == 0) {
            input[length] = 0;
            dup2(client, STDOUT_FILENO);
            close(client);
            close(listening);
            return;
        }
        int status = -1;
        if (child > 0) waitpid(child, &status, 0);
        char well = status == 0;
        send(client, &well, 1, MSG_NOSIGNAL);
        close(client);
    }
}

FILE *fopen(const char *path, const char *mode)
{
    static int times;
    FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
    const char *place = getenv("FORK_SERVER_SOCKET"), *owner = getenv("FORK_SERVER_OWNER");
    if (place && owner && ++times == 2) {
        serve(place, atoi(owner));
        path = input;
    }
    return real(path, mode);
}
