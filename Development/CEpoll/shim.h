// Linux's epoll, whose packed event and whose macros Swift cannot import as they are.
#ifndef CEPOLL_SHIM_H
#define CEPOLL_SHIM_H
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>
struct cepoll_ready {
  uint32_t events;
  uint32_t tag;
};
static const uint32_t cepoll_readable = EPOLLIN;
static const uint32_t cepoll_writable = EPOLLOUT;
static const uint32_t cepoll_broken = EPOLLERR | EPOLLHUP;
static inline int cepoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }
static inline int cepoll_add(int poll, int descriptor, uint32_t events, uint32_t tag) {
  struct epoll_event event = {.events = events, .data = {.u32 = tag}};
  return epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event);
}
static inline int cepoll_change(int poll, int descriptor, uint32_t events, uint32_t tag) {
  struct epoll_event event = {.events = events, .data = {.u32 = tag}};
  return epoll_ctl(poll, EPOLL_CTL_MOD, descriptor, &event);
}
// Waits at most so long; gives how many are ready, at most 256, or -1 with errno.
static inline int cepoll_wait(
    int poll, struct cepoll_ready *ready, int capacity, int64_t timeout_ns) {
  struct epoll_event events[256];
  struct timespec timeout = {
      .tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
  int count = epoll_pwait2(poll, events, capacity < 256 ? capacity : 256, &timeout, NULL);
  for (int index = 0; index < count; index++) {
    ready[index].events = events[index].events;
    ready[index].tag = events[index].data.u32;
  }
  return count;
}
#endif
