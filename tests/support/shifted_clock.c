/* Shifts and stops the clocks of one process, while it runs: loaded with LD_PRELOAD, driven by tests/support/shifted_clock.py.
 *
 * The file that SHIFTED_CLOCK names holds two int64 a clock (realtime, monotonic, boottime): an offset in nanoseconds, and
 * where the clock stands still; 0 for one that runs. Deadlines of waits are translated back to the kernel's clocks, so
 * that a wait lasts as long as it was meant to.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define FIRST_YEARS 1000000000LL /* seconds; a deadline below is one of the monotonic clock */

struct shifted { volatile int64_t offset, stands_at; };
enum { WALL, MONOTONIC, BOOT, CLOCKS };

static struct shifted running[CLOCKS];
static struct shifted *control = running;

static void __attribute__((constructor)) take_control(void)
{
    const char *path = getenv("SHIFTED_CLOCK");
    if (path == NULL)
        return;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *found = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(running), PROT_READ, MAP_SHARED, file, 0);
    if (found == MAP_FAILED) {
        perror(path);
        _exit(97);
    }
    close(file);
    control = found;
}

static struct shifted *shifted_of(clockid_t clock)
{
    switch (clock) {
    case CLOCK_REALTIME: case CLOCK_REALTIME_COARSE: return &control[WALL];
    case CLOCK_MONOTONIC: case CLOCK_MONOTONIC_COARSE: case CLOCK_MONOTONIC_RAW: return &control[MONOTONIC];
    case CLOCK_BOOTTIME: return &control[BOOT];
    default: return NULL;
    }
}

static int64_t count(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

static void fill(struct timespec *time, int64_t count)
{
    time->tv_sec = count / SECOND;
    time->tv_nsec = count % SECOND;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (syscall(SYS_clock_gettime, clock, time) != 0)
        return -1;
    struct shifted *shifted = shifted_of(clock);
    if (shifted != NULL) {
        int64_t stands_at = shifted->stands_at;
        fill(time, stands_at ? stands_at : count(time) + shifted->offset);
    }
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *place)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    if (place != NULL)
        *place = time.tv_sec;
    return time.tv_sec;
}

/* A deadline of this process's clock, by the kernel's. */
static struct timespec translated(clockid_t clock, const struct timespec *deadline)
{
    struct timespec kernel, shown, result;
    syscall(SYS_clock_gettime, clock, &kernel);
    clock_gettime(clock, &shown);
    int64_t due = count(deadline) - count(&shown) + count(&kernel);
    fill(&result, due > 0 ? due : 0);
    return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *rest)
{
    struct timespec due = flags & TIMER_ABSTIME ? translated(clock, wanted) : *wanted;
    return syscall(SYS_clock_nanosleep, clock, flags, &due, rest) == 0 ? 0 : errno;
}

typedef int sem_wait_of_clock(sem_t *, clockid_t, const struct timespec *);
typedef int sem_wait_until(sem_t *, const struct timespec *);
typedef int cond_wait_of_clock(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
typedef int cond_wait_until(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

int sem_clockwait(sem_t *waited, clockid_t clock, const struct timespec *deadline)
{
    struct timespec due = translated(clock, deadline);
    return ((sem_wait_of_clock *)dlsym(RTLD_NEXT, "sem_clockwait"))(waited, clock, &due);
}

int sem_timedwait(sem_t *waited, const struct timespec *deadline)
{
    struct timespec due = translated(CLOCK_REALTIME, deadline);
    return ((sem_wait_until *)dlsym(RTLD_NEXT, "sem_timedwait"))(waited, &due);
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline)
{
    struct timespec due = translated(clock, deadline);
    return ((cond_wait_of_clock *)dlsym(RTLD_NEXT, "pthread_cond_clockwait"))(cond, mutex, clock, &due);
}

/* The condition knows its clock and does not tell it: the deadline's size does. */
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline)
{
    void *wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2"); /* an older one has the same name */
    struct timespec due = translated(deadline->tv_sec < FIRST_YEARS ? CLOCK_MONOTONIC : CLOCK_REALTIME, deadline);
    return ((cond_wait_until *)(wait ? wait : dlsym(RTLD_NEXT, "pthread_cond_timedwait")))(cond, mutex, &due);
}
