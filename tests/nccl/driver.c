/* Drives a network plugin from C as NCCL does: dlopen, dlsym of every version, real transfers.
 *
 * The declarations are this file's own, so that a mistake in the Rust ones is not repeated here.
 * Sender and receiver are one process, and one thread asks both in turn.
 *
 *   driver PLUGIN.so [LARGEST_BYTES]     exit status 0: all versions passed
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int result;
typedef void (*logger)(int level, unsigned long flags, const char *file, int line,
                       const char *format, ...);
typedef struct { int traffic_class; } config;
typedef struct { int32_t most_peers, least_peers, most_flows, least_flows; } direction;
typedef struct { direction send, receive; uint32_t operation, algorithm, protocol; } attributes;

typedef struct {
  char *name, *pci;
  uint64_t guid;
  int pointers, global, speed, port;
  float latency;
  int comms, receives, device, device_version;
} props8;
typedef struct {
  char *name, *pci;
  uint64_t guid;
  int pointers, global, flush, speed, port;
  float latency;
  int comms, receives, device, device_version;
  struct { int count, devices[4]; } virtual_device;
  size_t p2p_bytes, collective_bytes;
} props9;
typedef struct { props9 base; int multi_request; } props11;
typedef struct {
  char *name, *pci;
  uint64_t guid;
  int pointers, global, flush, speed, port;
  float latency;
  int comms, receives, device, device_version;
  struct { int count, devices[8]; } virtual_device;
  size_t p2p_bytes, collective_bytes;
  int multi_request;
  int16_t rail, plane;
} props12;

/* The tables have the same places in all versions; what is in them differs. */
typedef void (*any)(void);
enum {
  INIT, DEVICES, PROPERTIES, LISTEN, CONNECT, ACCEPT, REGISTER, REGISTER_DMABUF, DEREGISTER, ISEND,
  IRECV, IFLUSH, TEST, CLOSE_SEND, CLOSE_RECV, CLOSE_LISTEN, DEVICE_MR, CONSUMED, MAKE_VDEVICE,
  FINALIZE, SET_ATTRIBUTES
};
typedef struct { const char *name; any call[21]; } table;

_Static_assert(sizeof(props8) == 64, "properties v8");
_Static_assert(sizeof(props9) == 104, "properties v9");
_Static_assert(sizeof(props11) == 112, "properties v11");
_Static_assert(sizeof(props12) == 128, "properties v12");
_Static_assert(sizeof(table) == 176, "table v12");

enum { HANDLE = 128, HOST = 1, IN_FLIGHT = 32, BUFFERS = 8 };

static int version;
static const table *net;
static void *context;
static int shown = 2; /* level of the log: warnings */
static int warned;    /* lines of the log since last looked */

#define FAIL(...)                                             \
  do {                                                        \
    fprintf(stderr, "v%d, line %d: ", version, __LINE__);     \
    fprintf(stderr, __VA_ARGS__);                             \
    fprintf(stderr, "\n");                                    \
    exit(1);                                                  \
  } while (0)
#define OK(call)                                              \
  do {                                                        \
    result returned = (call);                                  \
    if (returned != 0) FAIL("%s returned %d", #call, returned); \
  } while (0)
#define TRUE(what)                                            \
  do {                                                        \
    if (!(what)) FAIL("%s", #what);                           \
  } while (0)

static void log_line(int level, unsigned long flags, const char *file, int line, const char *format,
                     ...) {
  (void)flags, (void)file, (void)line;
  if (level == 2) warned++;
  if (level > shown) return;
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "  log: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Ends the program if something takes longer than anything here may. */
static void patience(double since, const char *what) {
  if (now() - since > 120) FAIL("%s takes more than two minutes", what);
  struct timespec moment = {0, 20000};
  nanosleep(&moment, NULL);
}

static result net_init(void **ctx) {
  config usual = {-1};
  if (version < 10) return ((result(*)(logger))net->call[INIT])(log_line);
  if (version < 11) return ((result(*)(logger, void *))net->call[INIT])(log_line, NULL);
  return ((result(*)(void **, uint64_t, config *, logger, void *))net->call[INIT])(
      ctx, 7, &usual, log_line, NULL);
}

static result net_listen(void *handle, void **comm) {
  if (version < 11) return ((result(*)(int, void *, void **))net->call[LISTEN])(0, handle, comm);
  return ((result(*)(void *, int, void *, void **))net->call[LISTEN])(context, 0, handle, comm);
}

static result net_connect(void *handle, void **comm) {
  config usual = {-1};
  void *offload = NULL;
  if (version < 10)
    return ((result(*)(int, void *, void **, void **))net->call[CONNECT])(0, handle, comm, &offload);
  if (version < 11)
    return ((result(*)(int, config *, void *, void **, void **))net->call[CONNECT])(
        0, &usual, handle, comm, &offload);
  return ((result(*)(void *, int, void *, void **, void **))net->call[CONNECT])(
      context, 0, handle, comm, &offload);
}

static result net_accept(void *listener, void **comm) {
  void *offload = NULL;
  return ((result(*)(void *, void **, void **))net->call[ACCEPT])(listener, comm, &offload);
}

static result net_register(void *comm, void *data, size_t size, int kind, void **memory) {
  return ((result(*)(void *, void *, size_t, int, void **))net->call[REGISTER])(
      comm, data, size, kind, memory);
}

static result net_deregister(void *comm, void *memory) {
  return ((result(*)(void *, void *))net->call[DEREGISTER])(comm, memory);
}

static result net_isend(void *comm, void *data, size_t size, int tag, void *memory, void **request) {
  if (version < 9)
    return ((result(*)(void *, void *, int, int, void *, void **))net->call[ISEND])(
        comm, data, (int)size, tag, memory, request);
  if (version < 10)
    return ((result(*)(void *, void *, size_t, int, void *, void **))net->call[ISEND])(
        comm, data, size, tag, memory, request);
  return ((result(*)(void *, void *, size_t, int, void *, void *, void **))net->call[ISEND])(
      comm, data, size, tag, memory, NULL, request);
}

static result net_irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **memory,
                        void **request) {
  int small[BUFFERS];
  void *profile[BUFFERS] = {NULL};
  for (int i = 0; i < n && i < BUFFERS; i++) small[i] = (int)sizes[i];
  if (version < 9)
    return ((result(*)(void *, int, void **, int *, int *, void **, void **))net->call[IRECV])(
        comm, n, data, small, tags, memory, request);
  if (version < 10)
    return ((result(*)(void *, int, void **, size_t *, int *, void **, void **))net->call[IRECV])(
        comm, n, data, sizes, tags, memory, request);
  return ((result(*)(void *, int, void **, size_t *, int *, void **, void **,
                     void **))net->call[IRECV])(comm, n, data, sizes, tags, memory, profile, request);
}

static result net_test(void *request, int *done, int *sizes) {
  return ((result(*)(void *, int *, int *))net->call[TEST])(request, done, sizes);
}

static result net_close(int which, void *comm) {
  return ((result(*)(void *))net->call[which])(comm);
}

/* Contents that tell where they belong. */
static unsigned char byte_at(size_t message, size_t at) {
  return (unsigned char)(at * 131 + message * 17 + (at >> 9));
}

static void fill(unsigned char *data, size_t size, size_t message) {
  for (size_t at = 0; at < size; at++) data[at] = byte_at(message, at);
}

static void check(const unsigned char *data, size_t size, size_t message) {
  for (size_t at = 0; at < size; at++)
    if (data[at] != byte_at(message, at))
      FAIL("message %zu of %zu bytes is wrong at byte %zu", message, size, at);
}

typedef struct { void *send, *receive, *send_memory, *receive_memory; } channel;

/* All that channels send from and receive into. */
static unsigned char *out, *in;
static size_t room;

static channel open_channel(void) {
  channel made = {NULL, NULL, NULL, NULL};
  unsigned char handle[HANDLE];
  void *listener = NULL;
  OK(net_listen(handle, &listener));
  TRUE(listener != NULL);
  OK(net_accept(listener, &made.receive));
  TRUE(made.receive == NULL); /* nobody has connected yet */
  double since = now();
  while (made.send == NULL || made.receive == NULL) {
    if (made.send == NULL) OK(net_connect(handle, &made.send));
    if (made.receive == NULL) OK(net_accept(listener, &made.receive));
    patience(since, "connecting");
  }
  OK(net_close(CLOSE_LISTEN, listener));
  OK(net_register(made.send, out, room, HOST, &made.send_memory));
  OK(net_register(made.receive, in, room, HOST, &made.receive_memory));
  return made;
}

static void close_channel(channel *made) {
  OK(net_deregister(made->send, made->send_memory));
  OK(net_deregister(made->receive, made->receive_memory));
  OK(net_close(CLOSE_SEND, made->send));
  OK(net_close(CLOSE_RECV, made->receive));
}

static void *post_send(channel *by, size_t from, size_t size, int tag) {
  void *request = NULL;
  double since = now();
  for (;;) {
    OK(net_isend(by->send, out + from, size, tag, by->send_memory, &request));
    if (request != NULL) return request;
    patience(since, "isend");
  }
}

static void *post_receive(channel *by, int n, void **data, size_t *sizes, int *tags, int optional) {
  void *memory[BUFFERS];
  double since = now();
  for (int i = 0; i < n; i++) memory[i] = by->receive_memory;
  for (;;) {
    void *request = optional ? (void *)1 : NULL;
    OK(net_irecv(by->receive, n, data, sizes, tags, memory, &request));
    if (request != NULL) return request;
    patience(since, "irecv");
  }
}

static void wait_for(void *request, int *sizes) {
  int done = 0;
  double since = now();
  for (;;) {
    OK(net_test(request, &done, sizes));
    if (done) return;
    patience(since, "a request");
  }
}

/* One message each way of asking, of a size that may be shorter than its buffer. */
static void one(channel *by, size_t size, size_t space, size_t message, int optional) {
  void *data[1] = {in};
  size_t sizes[1] = {space};
  int tags[1] = {5}, came[BUFFERS] = {-1, -1};
  fill(out, size, message);
  memset(in, 0xEE, space < 64 ? 64 : space);
  void *receive = post_receive(by, 1, data, sizes, tags, optional);
  void *send = post_send(by, 0, size, 5);
  wait_for(send, NULL);
  wait_for(receive, came);
  TRUE(came[0] == (int)size);
  check(in, size, message);
  for (size_t at = size; at < space; at++) TRUE(in[at] == 0xEE);
}

static void sizes_and_short_receives(channel *by, size_t largest) {
  size_t sizes[] = {0, 1, 7, 4096, 65537, 1 << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    one(by, sizes[i], sizes[i], i, 0);
    one(by, sizes[i], sizes[i] + 100, i + 50, 1);
  }
  one(by, largest, largest, 99, 0);
}

/* As many as NCCL posts, before the first is sent; they arrive in their order. */
static void many_in_flight(channel *by) {
  enum { SIZE = 3000 };
  void *receives[IN_FLIGHT], *sends[IN_FLIGHT];
  for (size_t i = 0; i < IN_FLIGHT; i++) {
    void *data[1] = {in + i * SIZE};
    size_t sizes[1] = {SIZE};
    int tags[1] = {0};
    receives[i] = post_receive(by, 1, data, sizes, tags, 0);
    fill(out + i * SIZE, SIZE - i, i);
  }
  /* One more is refused for now, or taken; neither is an error. */
  void *data[1] = {in + IN_FLIGHT * SIZE}, *memory[1] = {by->receive_memory}, *extra = NULL;
  size_t sizes[1] = {SIZE};
  int tags[1] = {0};
  OK(net_irecv(by->receive, 1, data, sizes, tags, memory, &extra));
  for (size_t i = 0; i < IN_FLIGHT; i++) sends[i] = post_send(by, i * SIZE, SIZE - i, 0);
  for (size_t i = IN_FLIGHT; i-- > 0;) wait_for(sends[i], NULL);
  for (size_t i = IN_FLIGHT; i-- > 0;) {
    int came[BUFFERS] = {0};
    wait_for(receives[i], came);
    TRUE(came[0] == (int)(SIZE - i));
    check(in + i * SIZE, SIZE - i, i);
  }
  if (extra != NULL) {
    int came[BUFFERS] = {-1};
    void *send = post_send(by, 0, 0, 0);
    wait_for(send, NULL);
    wait_for(extra, came);
    TRUE(came[0] == 0);
  }
}

/* Eight buffers in one receive; sends pick theirs by tag, in any order. */
static void several_buffers(channel *by) {
  enum { SIZE = 2000 };
  void *data[BUFFERS], *sends[BUFFERS];
  size_t sizes[BUFFERS];
  int tags[BUFFERS], came[BUFFERS] = {0};
  for (int i = 0; i < BUFFERS; i++) {
    data[i] = in + (size_t)i * SIZE;
    sizes[i] = SIZE;
    tags[i] = 100 + i;
  }
  void *receive = post_receive(by, BUFFERS, data, sizes, tags, 0);
  for (int i = BUFFERS - 1; i >= 0; i--) {
    fill(out + (size_t)i * SIZE, SIZE - (size_t)i * 10, (size_t)i);
    sends[i] = post_send(by, (size_t)i * SIZE, SIZE - (size_t)i * 10, 100 + i);
  }
  for (int i = 0; i < BUFFERS; i++) wait_for(sends[i], NULL);
  wait_for(receive, came);
  for (int i = 0; i < BUFFERS; i++) {
    TRUE(came[i] == SIZE - i * 10);
    check(data[i], (size_t)came[i], (size_t)i);
  }
}

/* Each is an error with one line in the log, and hurts nothing else. */
static void mistakes(channel *by) {
  unsigned char garbage[HANDLE];
  void *comm = NULL, *memory = NULL, *request = NULL;
  int done = 0, shown_before = shown;
  shown = 0;
  warned = 0;
  for (int i = 0; i < HANDLE; i++) garbage[i] = (unsigned char)(i * 37 + 11);
  TRUE(net_connect(garbage, &comm) != 0);
  TRUE(comm == NULL);
  TRUE(warned == 1);
  TRUE(net_connect(NULL, &comm) != 0);
  TRUE(net_listen(NULL, &comm) != 0);
  TRUE(net_accept(NULL, &comm) != 0);
  TRUE(net_register(by->send, out, 16, 2, &memory) != 0); /* CUDA memory */
  TRUE(net_isend(NULL, out, 1, 0, NULL, &request) != 0);
  TRUE(net_isend(by->receive, out, 1, 0, by->send_memory, &request) != 0);
  TRUE(net_isend(by->send, NULL, 1, 0, by->send_memory, &request) != 0);
  TRUE(net_test(NULL, &done, NULL) != 0);
  TRUE(net_close(CLOSE_SEND, NULL) != 0);
  TRUE(net_close(CLOSE_SEND, by->receive) != 0);
  TRUE(warned >= 9);
  shown = shown_before;
  one(by, 1000, 1000, 3, 0);
}

#define AGREES(p)                                                                 \
  do {                                                                            \
    TRUE((p).name != NULL && (p).name[0] != 0);                                   \
    TRUE((p).pointers == HOST && (p).speed > 0 && (p).comms > 0);                 \
    TRUE((p).receives == BUFFERS && (p).device == 0 && (p).global == 0);          \
    TRUE((p).latency == 0.0f);                                                    \
  } while (0)

static void properties(int count) {
  TRUE(count > 0);
  shown = 0;
  union { props8 v8; props9 v9; props11 v11; props12 v12; } got;
  memset(&got, 0xEE, sizeof got);
  OK(((result(*)(int, void *))net->call[PROPERTIES])(0, &got));
  if (version == 8) AGREES(got.v8);
  if (version == 9 || version == 10) AGREES(got.v9);
  if (version == 11) AGREES(got.v11.base);
  if (version == 12) AGREES(got.v12);
  if (version == 9 || version == 10) TRUE(got.v9.virtual_device.count == 1);
  if (version == 9 || version == 10) TRUE(got.v9.p2p_bytes == 1 << 30);
  if (version == 11) TRUE(got.v11.base.p2p_bytes == 1 << 30 && got.v11.multi_request == 1);
  if (version == 12) {
    TRUE(got.v12.virtual_device.count == 1 && got.v12.virtual_device.devices[0] == 0);
    TRUE(got.v12.p2p_bytes == 1 << 30 && got.v12.collective_bytes == 1 << 30);
    TRUE(got.v12.multi_request == 1 && got.v12.rail == -1 && got.v12.plane == -1);
  }
  TRUE(((result(*)(int, void *))net->call[PROPERTIES])(count, &got) != 0);
  shown = 2;
}

static void drive(size_t largest) {
  int count = 0;
  TRUE(strcmp(net->name, "Weft") == 0);
  context = NULL;
  /* Before any init, and after the last finalize, there is nothing to count. */
  shown = 0;
  if (version >= 11) TRUE(((result(*)(int *))net->call[DEVICES])(&count) != 0);
  shown = 2;
  OK(net_init(&context));
  TRUE(version < 11 || context != NULL);
  OK(((result(*)(int *))net->call[DEVICES])(&count));
  properties(count);
  if (version >= 11) {
    attributes expected = {{1, 1, 8, 1}, {-1, -1, -1, -1}, 16, 2, 4};
    OK(((result(*)(void *, attributes *))net->call[SET_ATTRIBUTES])(context, &expected));
  }
  channel by = open_channel(), beside = open_channel();
  sizes_and_short_receives(&by, largest);
  many_in_flight(&by);
  several_buffers(&by);
  mistakes(&by);
  one(&beside, 5000, 5000, 1, 0);
  close_channel(&by);
  one(&beside, 5000, 5000, 2, 0);
  close_channel(&beside);
  if (version >= 11) OK(((result(*)(void *))net->call[FINALIZE])(context));
}

int main(int count, char **arguments) {
  size_t largest = count > 2 ? strtoull(arguments[2], NULL, 10) : 16 << 20;
  void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    fprintf(stderr, "%s\n", count > 1 ? dlerror() : "usage: driver PLUGIN.so [LARGEST_BYTES]");
    return 2;
  }
  room = (largest > (2 << 20) ? largest : 2 << 20) + 128;
  out = malloc(room);
  in = malloc(room);
  if (out == NULL || in == NULL) return 2;
  /* Newest first, as NCCL; versions with a context end all that they began, others cannot. */
  for (version = 12; version >= 8; version--) {
    char name[32];
    snprintf(name, sizeof name, "ncclNetPlugin_v%d", version);
    net = dlsym(library, name);
    if (net == NULL) FAIL("there is no %s", name);
    drive(largest);
    drive(1 << 16); /* again, after finalize or in the same process */
    printf("v%d ok\n", version);
  }
  free(out);
  free(in);
  dlclose(library);
  return 0;
}
