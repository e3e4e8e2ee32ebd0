/* An RDMA device in the place of libibverbs: one process, reliable connections, all carried out as it is
 * posted. Memory that is registered as a DMA-BUF is like that of a GPU behind a bus: the device names it by
 * an address at which the processor finds nothing, and what is written to it is there only after a read.
 *
 * WITHOUT_DMABUF: the device takes none, as drivers that lack the function.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#undef ibv_reg_mr
#undef ibv_query_port

enum { MOST = 4096, DEEP = 1 << 14 };

typedef struct { struct ibv_mr mr; uint64_t address; char *host; int rights, is_gpu; } memory;
typedef struct { struct ibv_cq cq; struct ibv_wc ended[DEEP]; unsigned head, tail; int armed; } queue;
typedef struct {
  struct ibv_qp qp;
  struct ibv_recv_wr wanted[DEEP];
  struct ibv_sge places[DEEP];
  unsigned head, tail, rights, peer;
  int connected;
} pair;
typedef struct { memory *to; uint64_t at; size_t size; char *data; } write_behind;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static memory *memories[MOST];
static pair *pairs[MOST];
static write_behind *behind;
static size_t behind_count, behind_room;
static struct ibv_device the_device;
static struct ibv_context the_context;
static struct ibv_pd the_domain;

static void locked(void) { pthread_mutex_lock(&lock); }
static void unlocked(void) { pthread_mutex_unlock(&lock); }

static unsigned place_in(void **table, void *it) {
  /* Numbers begin at one, and are not given twice soon. */
  static unsigned next = 1;
  for (unsigned tried = 0; tried < MOST; tried++, next++)
    if (next % MOST && table[next % MOST] == NULL) {
      table[next % MOST] = it;
      return next++ % MOST;
    }
  abort();
}

/* Memory by key, if all of it may be used so. */
static memory *known(uint32_t key, uint64_t at, size_t size, int rights) {
  memory *found = key < MOST ? memories[key] : NULL;
  if (!found || at < found->address || at + size > found->address + found->mr.length) return NULL;
  return (found->rights & rights) == rights ? found : NULL;
}

static char *host_of(memory *of, uint64_t at) { return of->host + (at - of->address); }

static void bring(void) {
  for (size_t i = 0; i < behind_count; i++) {
    memcpy(host_of(behind[i].to, behind[i].at), behind[i].data, behind[i].size);
    free(behind[i].data);
  }
  behind_count = 0;
}

static void end(struct ibv_cq *at, struct ibv_wc what) {
  queue *to = (queue *)at;
  to->ended[to->tail++ % DEEP] = what;
  if (to->tail - to->head > DEEP) abort();
  if (to->armed) {
    uint64_t one = 1;
    to->armed = 0;
    if (write(at->channel->fd, &one, sizeof one) < 0) abort();
  }
}

static int carry_out(pair *from, struct ibv_send_wr *it, const char *data, size_t size) {
  pair *to = from->peer < MOST ? pairs[from->peer] : NULL;
  if (!to || !to->connected) return IBV_WC_RETRY_EXC_ERR;
  uint64_t at = it->wr.rdma.remote_addr;
  uint32_t key = it->wr.rdma.rkey;
  memory *of;
  switch (it->opcode) {
  case IBV_WR_RDMA_WRITE:
    of = to->rights & IBV_ACCESS_REMOTE_WRITE ? known(key, at, size, IBV_ACCESS_REMOTE_WRITE) : NULL;
    if (!of) return IBV_WC_REM_ACCESS_ERR;
    if (!of->is_gpu) {
      memcpy(host_of(of, at), data, size);
      return IBV_WC_SUCCESS;
    }
    if (behind_count == behind_room) {
      behind_room = 2 * behind_room + 64;
      behind = realloc(behind, behind_room * sizeof *behind);
    }
    behind[behind_count] = (write_behind){of, at, size, malloc(size)};
    memcpy(behind[behind_count++].data, data, size);
    return IBV_WC_SUCCESS;
  case IBV_WR_RDMA_READ:
    of = to->rights & IBV_ACCESS_REMOTE_READ ? known(key, at, size, IBV_ACCESS_REMOTE_READ) : NULL;
    if (!of) return IBV_WC_REM_ACCESS_ERR;
    bring();
    memcpy((char *)data, host_of(of, at), size);
    return IBV_WC_SUCCESS;
  case IBV_WR_SEND: {
    if (to->head == to->tail) return IBV_WC_RNR_RETRY_EXC_ERR;
    unsigned slot = to->head++ % DEEP;
    struct ibv_sge *place = &to->places[slot];
    of = known(place->lkey, place->addr, size, IBV_ACCESS_LOCAL_WRITE);
    if (!of || size > place->length) return IBV_WC_REM_INV_REQ_ERR;
    memcpy(host_of(of, place->addr), data, size);
    end(to->qp.recv_cq, (struct ibv_wc){.wr_id = to->wanted[slot].wr_id, .opcode = IBV_WC_RECV,
                                        .byte_len = size, .qp_num = to->qp.qp_num});
    return IBV_WC_SUCCESS;
  }
  default: return IBV_WC_GENERAL_ERR;
  }
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *it, struct ibv_send_wr **bad) {
  (void)bad;
  locked();
  char *data = NULL;
  size_t size = it->num_sge ? it->sg_list->length : 0;
  int status = IBV_WC_SUCCESS;
  if (size && it->send_flags & IBV_SEND_INLINE) data = (char *)it->sg_list->addr;
  else if (size) {
    int rights = it->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0;
    memory *of = known(it->sg_list->lkey, it->sg_list->addr, size, rights);
    if (of) data = host_of(of, it->sg_list->addr);
    else status = IBV_WC_LOC_PROT_ERR;
  }
  if (status == IBV_WC_SUCCESS) status = carry_out((pair *)qp, it, data, size);
  static const int codes[] = {[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE, [IBV_WR_SEND] = IBV_WC_SEND,
                              [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ};
  if (status != IBV_WC_SUCCESS || it->send_flags & IBV_SEND_SIGNALED)
    end(qp->send_cq, (struct ibv_wc){.wr_id = it->wr_id, .status = status, .qp_num = qp->qp_num,
                                     .opcode = codes[it->opcode]});
  unlocked();
  return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *it, struct ibv_recv_wr **bad) {
  pair *of = (pair *)qp;
  (void)bad;
  locked();
  of->wanted[of->tail % DEEP] = *it;
  if (it->num_sge) of->places[of->tail % DEEP] = *it->sg_list;
  of->tail++;
  unlocked();
  return 0;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *out) {
  queue *of = (queue *)cq;
  int count = 0;
  locked();
  while (count < most && of->head != of->tail) out[count++] = of->ended[of->head++ % DEEP];
  unlocked();
  return count;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited) {
  (void)solicited;
  locked();
  ((queue *)cq)->armed = 1;
  unlocked();
  return 0;
}

struct ibv_device **ibv_get_device_list(int *count) {
  struct ibv_device **list = calloc(2, sizeof *list);
  list[0] = &the_device;
  *count = 1;
  return list;
}
void ibv_free_device_list(struct ibv_device **list) { free(list); }
const char *ibv_get_device_name(struct ibv_device *device) { return (void)device, "fake_0"; }
struct ibv_context *ibv_open_device(struct ibv_device *device) {
  the_context.device = device;
  the_context.ops.poll_cq = poll_cq;
  the_context.ops.req_notify_cq = req_notify_cq;
  the_context.ops.post_send = post_send;
  the_context.ops.post_recv = post_recv;
  return &the_context;
}
int ibv_close_device(struct ibv_context *context) { return (void)context, 0; }
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *out) {
  struct ibv_port_attr *attr = (struct ibv_port_attr *)out;
  (void)context;
  if (port != 1) return EINVAL;
  attr->state = IBV_PORT_ACTIVE;
  attr->active_mtu = IBV_MTU_4096;
  attr->gid_tbl_len = 1;
  return 0;
}
int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t size) {
  (void)context, (void)flags, (void)size;
  if (index) return ENODATA;
  static const uint8_t loopback[16] = {[10] = 255, [11] = 255, [12] = 127, [15] = 1};
  memcpy(entry->gid.raw, loopback, 16);
  entry->port_num = port;
  entry->gid_type = IBV_GID_TYPE_ROCE_V2;
  return 0;
}
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
  the_domain.context = context;
  return &the_domain;
}
int ibv_dealloc_pd(struct ibv_pd *domain) { return (void)domain, 0; }

static struct ibv_mr *add(uint64_t address, char *host, size_t size, int rights, int is_gpu) {
  memory *made = calloc(1, sizeof *made);
  *made = (memory){.address = address, .host = host, .rights = rights, .is_gpu = is_gpu};
  locked();
  made->mr.length = size;
  made->mr.lkey = made->mr.rkey = place_in((void **)memories, made);
  unlocked();
  return &made->mr;
}
struct ibv_mr *ibv_reg_mr(struct ibv_pd *domain, void *start, size_t size, int rights) {
  (void)domain;
  return add((uint64_t)start, start, size, rights, 0);
}
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *domain, uint64_t offset, size_t size, uint64_t address,
                                 int file, int rights) {
  (void)domain;
  if (getenv("WITHOUT_DMABUF")) return errno = EOPNOTSUPP, NULL;
  char *host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);
  if (host == MAP_FAILED) return NULL;
  return add(address, host, size, rights, 1);
}
int ibv_dereg_mr(struct ibv_mr *mr) {
  memory *of = (memory *)mr;
  locked();
  bring();
  memories[mr->lkey] = NULL;
  if (of->is_gpu) munmap(of->host, mr->length);
  unlocked();
  free(of);
  return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
  struct ibv_comp_channel *made = calloc(1, sizeof *made);
  made->context = context;
  made->fd = eventfd(0, EFD_SEMAPHORE);
  return made;
}
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
  close(channel->fd);
  free(channel);
  return 0;
}
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *own,
                             struct ibv_comp_channel *channel, int vector) {
  queue *made = calloc(1, sizeof *made);
  (void)entries, (void)own, (void)vector;
  made->cq.context = context;
  made->cq.channel = channel;
  return &made->cq;
}
int ibv_destroy_cq(struct ibv_cq *cq) { return free(cq), 0; }
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **own) {
  uint64_t one;
  (void)cq, (void)own;
  return read(channel->fd, &one, sizeof one) == sizeof one ? 0 : -1;
}
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count) { (void)cq, (void)count; }

struct ibv_qp *ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *attr) {
  pair *made = calloc(1, sizeof *made);
  made->qp.context = domain->context;
  made->qp.send_cq = attr->send_cq;
  made->qp.recv_cq = attr->recv_cq;
  locked();
  made->qp.qp_num = place_in((void **)pairs, made);
  unlocked();
  return &made->qp;
}
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
  pair *of = (pair *)qp;
  locked();
  if (mask & IBV_QP_ACCESS_FLAGS) of->rights = attr->qp_access_flags;
  if (mask & IBV_QP_DEST_QPN) of->peer = attr->dest_qp_num;
  if (attr->qp_state == IBV_QPS_RTR) of->connected = 1;
  if (attr->qp_state == IBV_QPS_ERR) of->connected = 0;
  unlocked();
  return 0;
}
int ibv_destroy_qp(struct ibv_qp *qp) {
  locked();
  pairs[qp->qp_num] = NULL;
  unlocked();
  return free(qp), 0;
}
const char *ibv_wc_status_str(enum ibv_wc_status status) {
  static const char *words[] = {[IBV_WC_LOC_PROT_ERR] = "local protection error",
                                [IBV_WC_REM_ACCESS_ERR] = "remote access error"};
  const char *word = status < sizeof words / sizeof *words ? words[status] : NULL;
  return word ? word : "another error";
}
