// libmicrohttpd, with its variadic functions in a form that Swift can import.
#ifndef CMICROHTTPD_SHIM_H
#define CMICROHTTPD_SHIM_H
#include <errno.h>
#include <malloc.h>
#include <microhttpd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
// One thread for each connection, as blocking callbacks need; on one address.
static inline struct MHD_Daemon *cmicrohttpd_start_thread_per_connection(
    const struct sockaddr *address, unsigned int connection_limit,
    MHD_AccessHandlerCallback handler, MHD_RequestCompletedCallback completed,
    MHD_NotifyConnectionCallback connected, void *context) {
  return MHD_start_daemon(
      MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL,
      NULL, handler, context, MHD_OPTION_SOCK_ADDR, address, MHD_OPTION_CONNECTION_LIMIT,
      connection_limit, MHD_OPTION_NOTIFY_COMPLETED, completed, context,
      MHD_OPTION_NOTIFY_CONNECTION, connected, context, MHD_OPTION_END);
}
// The port that a daemon listens on; 0 where it cannot be told.
static inline uint16_t cmicrohttpd_port(struct MHD_Daemon *daemon) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
  return info ? info->port : 0;
}
// A header of a request by its name, whatever its case, and an argument of its query; null where there is none.
static inline const char *cmicrohttpd_header(struct MHD_Connection *connection, const char *name) {
  return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}
static inline const char *cmicrohttpd_argument(
    struct MHD_Connection *connection, const char *name) {
  return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

/// What a daemon is started with; `context` is handed to every callback.
struct cmhd_plan {
  int listen_fd;
  unsigned int connection_limit;
  size_t memory_bytes;
  size_t memory_increment_bytes;
  MHD_AcceptPolicyCallback accept;
  MHD_AccessHandlerCallback handle;
  MHD_RequestCompletedCallback completed;
  MHD_NotifyConnectionCallback notify;
  void *(*request_line)(void *context, const char *target, struct MHD_Connection *connection);
  size_t (*unescape)(void *context, struct MHD_Connection *connection, char *text);
  void *context;
};

/// Starts a daemon on a listening socket, without threads and time limits of its own. MHD_USE_TURBO has it not end the
/// sending side before it tells of a connection's end: there may be something left to say.
static inline struct MHD_Daemon *cmhd_start(const struct cmhd_plan *plan) {
  return MHD_start_daemon(
    MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO, 0,
    plan->accept, plan->context, plan->handle, plan->context,
    MHD_OPTION_LISTEN_SOCKET, plan->listen_fd,
    MHD_OPTION_CONNECTION_LIMIT, plan->connection_limit,
    MHD_OPTION_CONNECTION_MEMORY_LIMIT, plan->memory_bytes,
    MHD_OPTION_CONNECTION_MEMORY_INCREMENT, plan->memory_increment_bytes,
    MHD_OPTION_CONNECTION_TIMEOUT, 0u,
    MHD_OPTION_NOTIFY_COMPLETED, plan->completed, plan->context,
    MHD_OPTION_NOTIFY_CONNECTION, plan->notify, plan->context,
    MHD_OPTION_URI_LOG_CALLBACK, plan->request_line, plan->context,
    MHD_OPTION_UNESCAPE_CALLBACK, plan->unescape, plan->context,
    MHD_OPTION_END);
}

/// Makes a descriptor; each write to it ends the daemon's wait. Returns -1, with errno, on failure. Where the application
/// runs the daemon, MHD_resume_connection ends no wait. The library ignores events without a pointer (libmicrohttpd
/// 0.9.75, daemon.c). Nobody reads the descriptor: with EPOLLET, each write is an event.
static inline int cmhd_wake_descriptor(struct MHD_Daemon *daemon) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
  if (!info) {
    errno = ENOTSUP;
    return -1;
  }
  int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data = { .ptr = NULL } };
  if (descriptor >= 0 && epoll_ctl(info->epoll_fd, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    int code = errno;
    close(descriptor);
    errno = code;
    return -1;
  }
  return descriptor;
}

/// Writes to such a descriptor.
static inline void cmhd_wake(int descriptor) { (void)eventfd_write(descriptor, 1); }

/// The daemon of a connection.
static inline struct MHD_Daemon *cmhd_daemon(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_DAEMON);
  return info ? info->daemon : 0;
}

/// The socket of a connection; -1 where there is none.
static inline int cmhd_fd(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

/// The context that was set when the connection began.
static inline void *cmhd_socket_context(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : 0;
}

/// The peer's address; null where there is none.
static inline const struct sockaddr *cmhd_peer(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info ? info->client_addr : 0;
}

/// The size of the request's line and header block, in bytes.
static inline size_t cmhd_head_bytes(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return info ? info->header_size : 0;
}

/// The status of the queued answer; 0 where there is none.
static inline unsigned int cmhd_status(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_HTTP_STATUS);
  return info ? info->http_status : 0;
}

/// Whether a connection begins; else it ends.
static inline int cmhd_is_start(enum MHD_ConnectionNotificationCode code) {
  return code == MHD_CONNECTION_NOTIFY_STARTED;
}

/// Lends every header of the request, in order.
static inline void cmhd_headers(
    struct MHD_Connection *connection, MHD_KeyValueIteratorN iterator, void *context) {
  (void) MHD_get_connection_values_n(connection, MHD_HEADER_KIND, iterator, context);
}

/// A response with a copy of the body.
static inline struct MHD_Response *cmhd_response(const void *body, size_t size) {
  return MHD_create_response_from_buffer(size, (void *) body, MHD_RESPMEM_MUST_COPY);
}

/// Gives the system back what requests and responses have freed and the C library keeps, in all of its heaps.
static inline void cmhd_give_memory_back(void) { malloc_trim(0); }

/// A response whose body of `size` bytes is asked for in pieces of at most `piece_size` bytes. `context` is
/// handed to both callbacks; `release` is called once, unless the result is null.
static inline struct MHD_Response *cmhd_response_in_pieces(
    uint64_t size, size_t piece_size, MHD_ContentReaderCallback read,
    MHD_ContentReaderFreeCallback release, void *context) {
  return MHD_create_response_from_callback(size, piece_size, read, context, release);
}
#endif
