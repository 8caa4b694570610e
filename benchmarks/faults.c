/* Calls that change the disk, counted; the n-th one kills the process, or fails with an error of our choice.

   cc -shared -fPIC -o faults.so faults.c; LD_PRELOAD=faults.so python …; then arm(n, 0) kills, arm(n, EIO) fails,
   arm(-1, 0) only counts. What fails once goes on failing: a disk that is full stays full. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile long seen = 0, wanted = 0;
static volatile int watching = 0, failure = 0;

void arm(long n, int error) { seen = 0; wanted = n; failure = error; watching = 1; }
void disarm(void) { watching = 0; }
long calls(void) { return seen; }

static int fails(void) {
    if (!watching) return 0;
    seen++;
    if (wanted < 0 || seen < wanted) return 0;
    if (!failure) kill(getpid(), SIGKILL);
    errno = failure;
    return 1;
}

#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *from, size_t size) {
    return file > 2 && fails() ? -1 : REAL(write)(file, from, size);
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    return file > 2 && fails() ? -1 : REAL(writev)(file, parts, count);
}
int fsync(int file) { return fails() ? -1 : REAL(fsync)(file); }
int fdatasync(int file) { return fails() ? -1 : REAL(fdatasync)(file); }
int rename(const char *from, const char *to);
int rename(const char *from, const char *to) { return fails() ? -1 : REAL(rename)(from, to); }
int ftruncate64(int file, off64_t size);
int ftruncate64(int file, off64_t size) { return fails() ? -1 : REAL(ftruncate64)(file, size); }
