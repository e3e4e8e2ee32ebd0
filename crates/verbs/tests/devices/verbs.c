/* RDMA devices in the place of libibverbs: one process, reliable connections, all carried out as it is
 * posted. A queue pair that fails flushes what it has, as real ones do; queues have the room that was asked
 * for, and states come in their order. Device fake_N has the addresses 127.0.N.1 to 127.0.N.4. Memory is known
 * to the protection domain that it was registered with, and to no other. Memory that is registered as a DMA-BUF
 * is like that of a GPU behind a bus: a device names it by an address at which the processor finds nothing, and
 * what a device has written to it is there only after that device has read it.
 *
 * WITHOUT_DMABUF: devices take none, as drivers that lack the function.
 * Tests call what is at the end.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#undef ibv_reg_mr
#undef ibv_query_port

enum { MOST = 4096, DEEP = 1 << 14, DEVICES = 3, ADDRESSES = 4 };
/* How a port is. It says that it is up, and what is sent there is lost in silence; or posting is an error. Or the
 * device is gone. */
enum { UP, DOWN, SILENT, FAULTY, GONE };
/* Of what nobody answers, and how long it is tried: nanoseconds. */
enum { LOST = -1, TRIED = 300000000 };

typedef struct { struct ibv_mr mr; uint64_t address; char *host; int rights, is_gpu; } memory;
typedef struct {
  struct ibv_device device;
  struct ibv_context context;
  char name[8];
  int state, refuses, still;
  unsigned first;
  unsigned regions, ragged, slow;
  uint64_t written, reads;
} rdma_device;
typedef struct {
  struct ibv_cq cq;
  struct ibv_wc ended[DEEP], late[DEEP];
  uint64_t due[DEEP];
  unsigned head, tail, late_head, late_tail, entries;
  /* Up to which post of its queue pair each entry tells. */
  unsigned reach[DEEP], late_reach[DEEP];
  int armed;
} queue;
typedef struct {
  struct ibv_qp qp;
  struct ibv_recv_wr wanted[DEEP];
  struct ibv_sge places[DEEP];
  unsigned head, tail, rights, peer, sends, receives, posted, freed;
  int state, peer_device;
  /* Of no more use: what is posted is flushed. Or it waits for an answer to what it has sent. */
  int failed, waits;
} pair;
typedef struct { memory *to; uint64_t at; size_t size; char *data; int device; } write_behind;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static memory *memories[MOST];
static pair *pairs[MOST];
static write_behind *behind;
static size_t behind_count, behind_room;
static rdma_device devices[DEVICES];

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

static rdma_device *device_of(struct ibv_context *context) { return (rdma_device *)context->device; }
static int number_of(struct ibv_context *context) { return device_of(context) - devices; }
static int is_up(int device) { return devices[device].state == UP; }

/* Memory by key, if it is of a domain and all of it may be used so. */
static memory *known(struct ibv_pd *domain, uint32_t key, uint64_t at, size_t size, int rights) {
  memory *found = key < MOST ? memories[key] : NULL;
  if (!found || found->mr.pd != domain || at < found->address || at + size > found->address + found->mr.length) return NULL;
  return (found->rights & rights) == rights ? found : NULL;
}

static char *host_of(memory *of, uint64_t at) { return of->host + (at - of->address); }

/* What one device has written is in memory now; of all, where the number is below zero. */
static void bring(int device) {
  size_t left = 0;
  for (size_t i = 0; i < behind_count; i++) {
    if (device >= 0 && behind[i].device != device) {
      behind[left++] = behind[i];
      continue;
    }
    memcpy(host_of(behind[i].to, behind[i].at), behind[i].data, behind[i].size);
    free(behind[i].data);
  }
  behind_count = left;
}

static void end(struct ibv_cq *at, struct ibv_wc what, unsigned reach) {
  queue *to = (queue *)at;
  to->reach[to->tail % DEEP] = reach;
  to->ended[to->tail++ % DEEP] = what;
  /* A queue that overflows is broken for good. */
  if (to->tail - to->head > to->entries) abort();
  if (to->armed) {
    uint64_t one = 1;
    to->armed = 0;
    if (write(at->channel->fd, &one, sizeof one) < 0) abort();
  }
}

static uint64_t now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ull + at.tv_nsec;
}

/* It ends when it has been tried for long enough, and so does what is behind it. */
static void end_late(struct ibv_cq *at, struct ibv_wc what, unsigned reach) {
  queue *to = (queue *)at;
  to->due[to->late_tail % DEEP] = now() + TRIED;
  to->late_reach[to->late_tail % DEEP] = reach;
  to->late[to->late_tail++ % DEEP] = what;
}

/* A queue pair in the state of error: its buffers are flushed. */
static void fail(pair *of) {
  of->failed = 1;
  while (of->head != of->tail)
    end(of->qp.recv_cq, (struct ibv_wc){.wr_id = of->wanted[of->head++ % DEEP].wr_id, .qp_num = of->qp.qp_num,
                                        .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_SEND}, 0);
}

static int carry_out(pair *from, struct ibv_send_wr *it, const char *data, size_t size) {
  pair *to = from->peer < MOST ? pairs[from->peer] : NULL;
  if (!to || to->state < IBV_QPS_RTR || to->failed) return LOST;
  int own = number_of(from->qp.context), other = number_of(to->qp.context);
  if (devices[own].state == SILENT || devices[other].state == SILENT) return LOST;
  if (other != from->peer_device || !is_up(own) || !is_up(other)) return IBV_WC_RETRY_EXC_ERR;
  struct ibv_pd *domain = to->qp.pd;
  uint64_t at = it->wr.rdma.remote_addr;
  uint32_t key = it->wr.rdma.rkey;
  memory *of;
  switch (it->opcode) {
  case IBV_WR_RDMA_WRITE:
    of = to->rights & IBV_ACCESS_REMOTE_WRITE ? known(domain, key, at, size, IBV_ACCESS_REMOTE_WRITE) : NULL;
    if (!of) return fail(to), IBV_WC_REM_ACCESS_ERR;
    devices[own].written += size;
    if (!of->is_gpu) {
      memcpy(host_of(of, at), data, size);
      return IBV_WC_SUCCESS;
    }
    if (behind_count == behind_room) {
      behind_room = 2 * behind_room + 64;
      behind = realloc(behind, behind_room * sizeof *behind);
    }
    behind[behind_count] = (write_behind){of, at, size, malloc(size), other};
    memcpy(behind[behind_count++].data, data, size);
    return IBV_WC_SUCCESS;
  case IBV_WR_RDMA_READ:
    of = to->rights & IBV_ACCESS_REMOTE_READ ? known(domain, key, at, size, IBV_ACCESS_REMOTE_READ) : NULL;
    if (!of) return fail(to), IBV_WC_REM_ACCESS_ERR;
    devices[other].reads++;
    bring(other);
    memcpy((char *)data, host_of(of, at), size);
    return IBV_WC_SUCCESS;
  case IBV_WR_SEND: {
    if (to->head == to->tail) return IBV_WC_RNR_RETRY_EXC_ERR;
    unsigned slot = to->head++ % DEEP;
    struct ibv_sge *place = &to->places[slot];
    of = known(domain, place->lkey, place->addr, size, IBV_ACCESS_LOCAL_WRITE);
    if (!of || size > place->length) return fail(to), IBV_WC_REM_INV_REQ_ERR;
    memcpy(host_of(of, place->addr), data, size);
    end(to->qp.recv_cq, (struct ibv_wc){.wr_id = to->wanted[slot].wr_id, .opcode = IBV_WC_RECV,
                                        .byte_len = size, .qp_num = to->qp.qp_num}, 0);
    return IBV_WC_SUCCESS;
  }
  default: return IBV_WC_GENERAL_ERR;
  }
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *it, struct ibv_send_wr **bad) {
  static const int codes[] = {[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE, [IBV_WR_SEND] = IBV_WC_SEND,
                              [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ};
  pair *from = (pair *)qp;
  (void)bad;
  if (device_of(qp->context)->state == FAULTY) return EIO;
  if (from->state != IBV_QPS_RTS && !from->failed) return EINVAL;
  locked();
  if (from->posted - from->freed >= from->sends) return unlocked(), ENOMEM;
  char *data = NULL;
  size_t size = it->num_sge ? it->sg_list->length : 0;
  int status = from->failed || from->waits ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS;
  if (size && it->send_flags & IBV_SEND_INLINE) data = (char *)it->sg_list->addr;
  else if (size) {
    int rights = it->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0;
    memory *of = known(qp->pd, it->sg_list->lkey, it->sg_list->addr, size, rights);
    if (of) data = host_of(of, it->sg_list->addr);
    else if (status == IBV_WC_SUCCESS) status = IBV_WC_LOC_PROT_ERR;
  }
  if (status == IBV_WC_SUCCESS) status = carry_out(from, it, data, size);
  struct ibv_wc ended = {.wr_id = it->wr_id, .status = status, .qp_num = qp->qp_num, .opcode = codes[it->opcode]};
  unsigned reach = ++from->posted;
  if (status == LOST) ended.status = IBV_WC_RETRY_EXC_ERR;
  if (status == LOST || (from->waits && !from->failed)) {
    from->waits = 1;
    end_late(qp->send_cq, ended, reach);
  } else {
    if (status != IBV_WC_SUCCESS || it->send_flags & IBV_SEND_SIGNALED) end(qp->send_cq, ended, reach);
    if (status != IBV_WC_SUCCESS) fail(from);
  }
  unlocked();
  return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *it, struct ibv_recv_wr **bad) {
  pair *of = (pair *)qp;
  (void)bad;
  locked();
  if (of->tail - of->head >= of->receives) return unlocked(), ENOMEM;
  of->wanted[of->tail % DEEP] = *it;
  if (it->num_sge) of->places[of->tail % DEEP] = *it->sg_list;
  of->tail++;
  if (of->failed) fail(of);
  unlocked();
  return 0;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *out) {
  queue *of = (queue *)cq;
  int count = 0;
  if (device_of(cq->context)->state == GONE) return -1;
  if (device_of(cq->context)->still) return 0;
  locked();
  while (of->late_head != of->late_tail && of->due[of->late_head % DEEP] <= now()) {
    unsigned at = of->late_head++ % DEEP;
    pair *from = pairs[of->late[at].qp_num];
    /* Of what is destroyed nothing ends. */
    if (!from) continue;
    end(cq, of->late[at], of->late_reach[at]);
    if (!from->failed) fail(from);
  }
  while (count < most && of->head != of->tail) {
    unsigned at = of->head++ % DEEP;
    pair *from = pairs[of->ended[at].qp_num];
    if (from && of->reach[at]) from->freed = of->reach[at];
    out[count++] = of->ended[at];
  }
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
  struct ibv_device **list = calloc(DEVICES + 1, sizeof *list);
  for (int number = 0; number < DEVICES; number++) {
    list[number] = &devices[number].device;
    snprintf(devices[number].name, sizeof devices[number].name, "fake_%d", number);
  }
  *count = DEVICES;
  return list;
}
void ibv_free_device_list(struct ibv_device **list) { free(list); }
const char *ibv_get_device_name(struct ibv_device *device) { return ((rdma_device *)device)->name; }
struct ibv_context *ibv_open_device(struct ibv_device *device) {
  rdma_device *opened = (rdma_device *)device;
  if (opened->state == GONE) return errno = EIO, NULL;
  opened->context.device = device;
  opened->context.ops.poll_cq = poll_cq;
  opened->context.ops.req_notify_cq = req_notify_cq;
  opened->context.ops.post_send = post_send;
  opened->context.ops.post_recv = post_recv;
  return &opened->context;
}
int ibv_close_device(struct ibv_context *context) { return (void)context, 0; }
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *out) {
  struct ibv_port_attr *attr = (struct ibv_port_attr *)out;
  int state = device_of(context)->state;
  if (port != 1) return EINVAL;
  if (state == GONE) return EIO;
  attr->state = state == DOWN ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
  attr->active_mtu = IBV_MTU_4096;
  attr->gid_tbl_len = device_of(context)->first + ADDRESSES;
  return 0;
}
int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t size) {
  (void)flags, (void)size;
  index -= device_of(context)->first;
  if (index >= ADDRESSES) return ENODATA;
  const uint8_t address[16] = {
      [10] = 255, [11] = 255, [12] = 127, [14] = number_of(context), [15] = index + 1};
  memcpy(entry->gid.raw, address, 16);
  entry->port_num = port;
  entry->gid_type = IBV_GID_TYPE_ROCE_V2;
  return 0;
}
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
  struct ibv_pd *made = calloc(1, sizeof *made);
  made->context = context;
  return made;
}
int ibv_dealloc_pd(struct ibv_pd *domain) { return free(domain), 0; }

static int refuses(struct ibv_pd *domain) {
  rdma_device *of = device_of(domain->context);
  if (of->state == GONE || of->refuses) return errno = of->refuses ? ENOMEM : EIO, 1;
  return 0;
}

static struct ibv_mr *add(struct ibv_pd *domain, uint64_t address, char *host, size_t size, int rights,
                          int is_gpu) {
  memory *made = calloc(1, sizeof *made);
  *made = (memory){.address = address, .host = host, .rights = rights, .is_gpu = is_gpu};
  locked();
  device_of(domain->context)->regions++;
  made->mr.pd = domain;
  made->mr.context = domain->context;
  made->mr.length = size;
  made->mr.lkey = made->mr.rkey = place_in((void **)memories, made);
  unlocked();
  return &made->mr;
}
struct ibv_mr *ibv_reg_mr(struct ibv_pd *domain, void *start, size_t size, int rights) {
  if (refuses(domain)) return NULL;
  usleep(device_of(domain->context)->slow);
  device_of(domain->context)->ragged += ((uint64_t)start | size) % sysconf(_SC_PAGESIZE) > 0;
  return add(domain, (uint64_t)start, start, size, rights, 0);
}
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *domain, uint64_t offset, size_t size, uint64_t address,
                                 int file, int rights) {
  if (getenv("WITHOUT_DMABUF")) return errno = EOPNOTSUPP, NULL;
  if (file >= 0 && refuses(domain)) return NULL;
  char *host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);
  if (host == MAP_FAILED) return NULL;
  return add(domain, address, host, size, rights, 1);
}
int ibv_dereg_mr(struct ibv_mr *mr) {
  memory *of = (memory *)mr;
  locked();
  bring(-1);
  device_of(mr->context)->regions--;
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
  (void)own, (void)vector;
  if (entries > DEEP) return errno = EINVAL, NULL;
  made->entries = entries;
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
  if (device_of(domain->context)->state == GONE) return errno = EIO, NULL;
  pair *made = calloc(1, sizeof *made);
  made->qp.context = domain->context;
  made->qp.pd = domain;
  made->qp.send_cq = attr->send_cq;
  made->qp.recv_cq = attr->recv_cq;
  made->sends = attr->cap.max_send_wr;
  made->receives = attr->cap.max_recv_wr;
  locked();
  made->qp.qp_num = place_in((void **)pairs, made);
  unlocked();
  return &made->qp;
}
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
  /* What a reliable connection must be told on its way to each state. */
  static const int wants[] = {
      [IBV_QPS_INIT] = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
      [IBV_QPS_RTR] = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
      [IBV_QPS_RTS] = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                      IBV_QP_MAX_QP_RD_ATOMIC,
      [IBV_QPS_ERR] = IBV_QP_STATE};
  pair *of = (pair *)qp;
  int state = attr->qp_state;
  if (mask != wants[state] || (state != IBV_QPS_ERR && state != of->state + 1)) return EINVAL;
  if (mask & IBV_QP_AV && (attr->ah_attr.grh.sgid_index - device_of(qp->context)->first >= ADDRESSES || !attr->ah_attr.is_global ||
                           attr->ah_attr.port_num != 1 || attr->path_mtu > IBV_MTU_4096))
    return EINVAL;
  locked();
  if (mask & IBV_QP_ACCESS_FLAGS) of->rights = attr->qp_access_flags;
  if (mask & IBV_QP_DEST_QPN) of->peer = attr->dest_qp_num;
  if (mask & IBV_QP_AV) of->peer_device = attr->ah_attr.grh.dgid.raw[14];
  of->state = state;
  if (state == IBV_QPS_ERR) fail(of);
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

/* For tests. */
void fake_set_state(int device, int state) {
  locked();
  devices[device].state = state;
  unlocked();
}
void fake_fail_pairs(int device) {
  locked();
  for (unsigned at = 0; at < MOST; at++)
    if (pairs[at] && number_of(pairs[at]->qp.context) == device) fail(pairs[at]);
  unlocked();
}
void fake_move_addresses(int device, unsigned first) { devices[device].first = first; }
void fake_register_in(int device, unsigned us) { devices[device].slow = us; }
void fake_stand_still(int device, int still) { devices[device].still = still; }
void fake_refuse_memory(int device, int refuses) { devices[device].refuses = refuses; }
unsigned fake_regions(int device) { return devices[device].regions; }
unsigned fake_ragged(int device) { return devices[device].ragged; }
/* Bytes that it has written to peers, and reads of memory by itself. */
uint64_t fake_written(int device) { return devices[device].written; }
uint64_t fake_reads(int device) { return devices[device].reads; }
