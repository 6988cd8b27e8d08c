/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into a program, makes one of its calls fail: the RUNG_FAULT_NUMBER-th of
 * RUNG_FAULT_KIND (allocate, open, write, link, rename, fsync, thread) after it has opened a file
 * whose name ends in RUNG_FAULT_AFTER; a thread's failure lasts, as a limit's does. Creates the
 * file RUNG_FAULT_FIRED when it does so.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static int armed;
static long calls;

/* Whether this call of `kind` is the one to fail. Allocates nothing. */
static int fails(const char* kind) {
  const char* chosen = getenv("RUNG_FAULT_KIND");
  const char* number = getenv("RUNG_FAULT_NUMBER");
  const char* fired = getenv("RUNG_FAULT_FIRED");
  if (!__atomic_load_n(&armed, __ATOMIC_ACQUIRE) || chosen == NULL || number == NULL ||
      fired == NULL || strcmp(kind, chosen) != 0) {
    return 0;
  }
  const long call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  if (call != atol(number) && !(strcmp(kind, "thread") == 0 && call > atol(number))) return 0;
  syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, fired, O_CREAT | O_WRONLY, 0600));
  return 1;
}

static void note_opened(const char* path) {
  const char* after = getenv("RUNG_FAULT_AFTER");
  if (after == NULL || path == NULL) return;
  const size_t have = strlen(path), wanted = strlen(after);
  if (have >= wanted && strcmp(path + have - wanted, after) == 0) {
    __atomic_store_n(&armed, 1, __ATOMIC_RELEASE);
  }
}

void* malloc(size_t size) {
  if (!fails("allocate")) return __libc_malloc(size);
  errno = ENOMEM;
  return NULL;
}
void* calloc(size_t count, size_t size) {
  if (!fails("allocate")) return __libc_calloc(count, size);
  errno = ENOMEM;
  return NULL;
}
void* realloc(void* memory, size_t size) {
  if (!fails("allocate")) return __libc_realloc(memory, size);
  errno = ENOMEM;
  return NULL;
}
void* aligned_alloc(size_t alignment, size_t size) {
  if (!fails("allocate")) return __libc_memalign(alignment, size);
  errno = ENOMEM;
  return NULL;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (fails("open")) {
    errno = EMFILE;
    return -1;
  }
  note_opened(path);
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));

ssize_t write(int file, const void* from, size_t bytes) {
  /* Messages are let through: how the program ends is what is tested. */
  if (file > 2 && fails("write")) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_write, file, from, bytes);
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  if (fails("link")) {
    errno = EIO;
    return -1;
  }
  return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}
int rename(const char* from, const char* to) {
  if (fails("rename")) {
    errno = EIO;
    return -1;
  }
  return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int fsync(int file) {
  if (fails("fsync")) {
    errno = EIO;
    return -1;
  }
  return (int)syscall(SYS_fsync, file);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (fails("thread")) return EAGAIN;
  Create next;
  *(void**)&next = dlsym(RTLD_NEXT, "pthread_create");
  return next(thread, attributes, start, argument);
}
