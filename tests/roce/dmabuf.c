/* Gives Soft-RoCE, which takes no DMA-BUF, the call that registers one: by a mapping of the file, which the
 * device names by the address that was asked for. To be preloaded; whoever looks the call up finds this one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static void *(*register_at)(void *, void *, size_t, uint64_t, int);

static void *register_dma_buf(void *domain, uint64_t offset, size_t size, uint64_t address, int file,
                              int rights) {
  void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
  if (mapped == MAP_FAILED) {
    errno = EBADF;
    return NULL;
  }
  return register_at(domain, mapped, size, address, rights);
}

void *dlsym(void *library, const char *name) {
  static void *(*real)(void *, const char *);
  if (real == NULL) *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (real == NULL) *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (strcmp(name, "ibv_reg_dmabuf_mr") != 0) return real(library, name);
  *(void **)&register_at = real(library, "ibv_reg_mr_iova");
  return (void *)register_dma_buf;
}
