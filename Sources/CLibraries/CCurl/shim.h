// libcurl, with its variadic functions made typed: Swift cannot import those.
#ifndef CCURL_SHIM_H
#define CCURL_SHIM_H
#include <arpa/inet.h>
#include <curl/curl.h>
static inline CURLcode ccurl_set_long(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode ccurl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode ccurl_set_pointer(CURL *handle, CURLoption option, void *value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode ccurl_set_text(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode ccurl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
  return curl_easy_setopt(handle, option, value);
}
/* The write, the header and the read function have this shape. */
typedef size_t (*ccurl_receive)(char *bytes, size_t size, size_t count, void *context);
static inline CURLcode ccurl_set_receive(CURL *handle, CURLoption option, ccurl_receive value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode ccurl_set_seek(CURL *handle, curl_seek_callback value) {
  return curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, value);
}
static inline CURLcode ccurl_set_progress(CURL *handle, curl_xferinfo_callback value) {
  return curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, value);
}
static inline CURLcode ccurl_set_open_socket(CURL *handle, curl_opensocket_callback value) {
  return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, value);
}
static inline CURLcode ccurl_set_connected(CURL *handle, curl_prereq_callback value) {
  return curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, value);
}
/* Writes the numeric address into INET6_ADDRSTRLEN bytes; NULL for an address of another family. */
static inline const char *ccurl_address(const struct curl_sockaddr *address, char *text) {
  const void *ipv4 = &((const struct sockaddr_in *)&address->addr)->sin_addr;
  const void *ipv6 = &((const struct sockaddr_in6 *)&address->addr)->sin6_addr;
  return inet_ntop(
      address->family, address->family == AF_INET ? ipv4 : ipv6, text, INET6_ADDRSTRLEN);
}
static inline CURLcode ccurl_get_long(CURL *handle, CURLINFO info, long *value) {
  return curl_easy_getinfo(handle, info, value);
}
static inline CURLcode ccurl_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
  return curl_easy_getinfo(handle, info, value);
}
static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}
#endif
