/* A network plugin whose `test` writes no sizes, as the interface allows of sends and some plugins do of
 * all: another plugin, named by INNER_PLUGIN, with one function in front. With HALVES set each message is
 * sent by half, which nobody tells the receiver.
 *
 * The table is this file's own: the places of version 12's functions.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*any)(void);
enum { ISEND = 9, TEST = 12, CALLS = 21 };
typedef struct { const char *name; any call[CALLS]; } table;
typedef int (*isend)(void *, void *, size_t, int, void *, void *, void **);
typedef int (*test)(void *, int *, int *);

static table inner;
table ncclNetPlugin_v12;

static int silent_test(void *request, int *done, int *sizes) {
  int unseen[8];
  (void)sizes;
  return ((test)inner.call[TEST])(request, done, unseen);
}

static int half_isend(void *comm, void *data, size_t size, int tag, void *memory, void *profile,
                      void **request) {
  return ((isend)inner.call[ISEND])(comm, data, size / 2, tag, memory, profile, request);
}

__attribute__((constructor)) static void load(void) {
  const char *file = getenv("INNER_PLUGIN");
  void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
  const table *found = library ? (const table *)dlsym(library, "ncclNetPlugin_v12") : NULL;
  if (found == NULL) {
    fprintf(stderr, "silent: INNER_PLUGIN is no plugin\n");
    exit(1);
  }
  memcpy(&inner, found, sizeof inner);
  memcpy(&ncclNetPlugin_v12, found, sizeof inner);
  ncclNetPlugin_v12.name = "Silent";
  ncclNetPlugin_v12.call[TEST] = (any)silent_test;
  if (getenv("HALVES")) ncclNetPlugin_v12.call[ISEND] = (any)half_isend;
}
