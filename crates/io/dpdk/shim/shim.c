#define _GNU_SOURCE
/* rte_dev_dma_map, which has been the same since 20.11. */
#define ALLOW_EXPERIMENTAL_API
#include "shim.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_prefetch.h>
#include <rte_version.h>

/* What libdpdk says goes here and not to the daemon's standard error: the first line of an error is kept for the answer. */
static struct {
	pthread_mutex_t lock;
	char line[240];
	size_t length;
	int full;
} complaint = { .lock = PTHREAD_MUTEX_INITIALIZER };

static ssize_t hear(void *cookie, const char *text, size_t length)
{
	(void)cookie;
	if (rte_log_cur_msg_loglevel() > (int)RTE_LOG_ERR)
		return length;
	pthread_mutex_lock(&complaint.lock);
	for (size_t i = 0; i < length && !complaint.full; i++) {
		if (text[i] == '\n')
			complaint.full = complaint.length > 0;
		else if (complaint.length + 1 < sizeof(complaint.line))
			complaint.line[complaint.length++] = isprint((unsigned char)text[i]) ? text[i] : ' ';
	}
	pthread_mutex_unlock(&complaint.lock);
	return length;
}

/* The first error since the last time. Returns its length. */
size_t vd_complaint(char *out, size_t room)
{
	pthread_mutex_lock(&complaint.lock);
	size_t length = complaint.length < room ? complaint.length : room;
	memcpy(out, complaint.line, length);
	complaint.length = 0;
	complaint.full = 0;
	pthread_mutex_unlock(&complaint.lock);
	return length;
}

static ssize_t forget(void *cookie, const char *text, size_t length)
{
	(void)cookie;
	(void)text;
	return length;
}

/*
 * Start the EAL. It pins the thread that calls it, and prints its manual when it does not like an argument: the first is
 * undone, the second goes nowhere, and what getopt says of the argument is the complaint.
 */
int vd_start(int argc, char **argv)
{
	cookie_io_functions_t functions = { .write = hear }, nowhere = { .write = forget };
	FILE *stream = fopencookie(NULL, "w", functions), *dark = fopencookie(NULL, "w", nowhere);
	FILE *out = stdout, *err = stderr;
	cpu_set_t cores;
	int code;

	if (stream == NULL || dark == NULL)
		return -errno;
	setvbuf(stream, NULL, _IOLBF, 1024);
	rte_openlog_stream(stream);
	pthread_getaffinity_np(pthread_self(), sizeof(cores), &cores);
	stdout = dark;
	stderr = stream;
	code = rte_eal_init(argc, argv) < 0 ? -rte_errno : 0;
	stdout = out;
	stderr = err;
	pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
	return code;
}

const char *vd_version(void)
{
	return rte_version();
}

int vd_errno(void)
{
	return rte_errno;
}

const char *vd_error(int code)
{
	return rte_strerror(code);
}

/* One mbuf for each slot of the arena, for ever: slot and mbuf change hands together. */
struct vd_pool {
	struct rte_mempool *mp;
	uint8_t *arena;
	size_t bytes;
	size_t page;
	uint32_t front;
	uint32_t room;
	uint32_t slots;
	void *memory;
	size_t memory_bytes;
	int is_registered;
	struct rte_mbuf **of_slot;
};

static void pair(struct rte_mempool *mp, void *opaque, void *object, unsigned int index)
{
	struct vd_pool *pool = opaque;
	struct rte_mbuf *m = object;

	memset(m, 0, sizeof(*m));
	m->buf_addr = pool->arena + (size_t)index * VD_STRIDE + pool->front;
	rte_mbuf_iova_set(m, (rte_iova_t)(uintptr_t)m->buf_addr);
	m->buf_len = pool->room;
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->pool = mp;
	m->nb_segs = 1;
	m->port = RTE_MBUF_PORT_INVALID;
	rte_mbuf_refcnt_set(m, 1);
	pool->of_slot[index] = m;
}

static int fill(struct vd_pool *pool, const char *name)
{
	struct rte_pktmbuf_pool_private private = { .mbuf_data_room_size = pool->room };
	struct rte_mempool_objsz size;
	int count;

	pool->mp = rte_mempool_create_empty(name, pool->slots, sizeof(struct rte_mbuf), 0, sizeof(private),
					    SOCKET_ID_ANY, 0);
	if (pool->mp == NULL)
		return -rte_errno;
	/* Lock-free, so that a thread that is interrupted in the middle is in nobody's way. */
	if (rte_mempool_set_ops_byname(pool->mp, "lf_stack", NULL) != 0 &&
	    rte_mempool_set_ops_byname(pool->mp, "ring_mp_mc", NULL) != 0)
		return -ENOENT;
	rte_pktmbuf_pool_init(pool->mp, &private);
	rte_mempool_calc_obj_size(sizeof(struct rte_mbuf), 0, &size);
	/* No object lies across the end of a page. */
	pool->memory_bytes = 4096 * ((size_t)pool->slots / (4096 / size.total_size) + 3);
	pool->memory = mmap(NULL, pool->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pool->memory == MAP_FAILED)
		return -errno;
	madvise(pool->memory, pool->memory_bytes, MADV_HUGEPAGE);
	count = rte_mempool_populate_iova(pool->mp, pool->memory, (rte_iova_t)(uintptr_t)pool->memory,
					  pool->memory_bytes, NULL, NULL);
	if (count < 0)
		return count;
	if ((uint32_t)count < pool->slots || rte_mempool_obj_iter(pool->mp, pair, pool) != pool->slots)
		return -ENOMEM;
	return 0;
}

struct vd_pool *vd_pool_new(const char *name, uint8_t *arena, size_t bytes, size_t page, uint32_t slots, uint32_t stride,
			    uint32_t front, uint32_t room)
{
	struct vd_pool *pool = calloc(1, sizeof(*pool));
	uint32_t slot;
	int code;

	if (pool == NULL || stride != VD_STRIDE) {
		free(pool);
		rte_errno = ENOMEM;
		return NULL;
	}
	pool->arena = arena;
	pool->bytes = bytes;
	pool->page = page;
	pool->front = front;
	pool->room = room;
	pool->slots = slots;
	pool->memory = MAP_FAILED;
	pool->of_slot = calloc(slots, sizeof(*pool->of_slot));
	code = pool->of_slot == NULL ? -ENOMEM : fill(pool, name);
	/* The mempool begins with all of them; it is to begin with none. */
	for (slot = 0; code == 0 && slot < slots; slot++) {
		void *object;

		code = rte_mempool_get(pool->mp, &object);
	}
	if (code != 0) {
		vd_pool_free(pool);
		rte_errno = -code;
		return NULL;
	}
	return pool;
}

void vd_pool_free(struct vd_pool *pool)
{
	if (pool->is_registered)
		rte_extmem_unregister(pool->arena, pool->bytes);
	rte_mempool_free(pool->mp);
	if (pool->memory != MAP_FAILED)
		munmap(pool->memory, pool->memory_bytes);
	free(pool->of_slot);
	free(pool);
}

uint32_t vd_pool_level(const struct vd_pool *pool)
{
	return rte_mempool_avail_count(pool->mp);
}

/* Hand slots over to ports. */
void vd_pool_put(struct vd_pool *pool, const uint32_t *slots, uint32_t count)
{
	void *objects[256];
	uint32_t at, i;

	for (at = 0; at < count; at += i) {
		for (i = 0; i < 256 && at + i < count; i++)
			objects[i] = pool->of_slot[slots[at + i]];
		rte_mempool_put_bulk(pool->mp, objects, i);
	}
}

static inline uint32_t slot_of(const struct vd_pool *pool, const struct rte_mbuf *m)
{
	return (uint32_t)(((uint8_t *)m->buf_addr - pool->arena) / 64) / (VD_STRIDE / 64);
}

/* Take slots back that no port has. Returns how many. */
uint32_t vd_pool_take(struct vd_pool *pool, uint32_t *slots, uint32_t count)
{
	void *objects[256];
	uint32_t got = 0;

	while (got < count) {
		uint32_t level = rte_mempool_avail_count(pool->mp);
		uint32_t want = RTE_MIN(RTE_MIN(level, count - got), 256u);

		if (want == 0 || rte_mempool_get_bulk(pool->mp, objects, want) != 0)
			break;
		for (uint32_t i = 0; i < want; i++)
			slots[got++] = slot_of(pool, objects[i]);
	}
	return got;
}

/* Bring a device in, and find its first port. */
int vd_probe(const char *device, uint16_t *port)
{
	struct rte_dev_iterator iterator;
	char name[RTE_DEV_NAME_MAX_LEN];
	uint16_t id;
	int code;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ","), device);
	/* Some buses say 0 for a device that is there already, and it is somebody's. */
	if (rte_eth_dev_get_port_by_name(name, port) == 0)
		return -EEXIST;
	code = rte_dev_probe(device);
	if (code != 0)
		return code;
	if (rte_eth_dev_get_port_by_name(name, port) == 0)
		return 0;
	*port = RTE_MAX_ETHPORTS;
	RTE_ETH_FOREACH_MATCHING_DEV(id, device, &iterator) {
		*port = id;
		rte_eth_iterator_cleanup(&iterator);
		return 0;
	}
	rte_eal_hotplug_remove("vdev", name);
	return -ENOTSUP;
}

static struct rte_device *device_of(uint16_t port)
{
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(port, &info) == 0 ? info.device : NULL;
}

static int remove_device(uint16_t port)
{
	struct rte_device *device = device_of(port);

	return device == NULL ? -ENODEV : rte_dev_remove(device);
}

static int is_pci(uint16_t port)
{
	struct rte_device *device = device_of(port);

	return device != NULL && rte_dev_bus(device) != NULL && strcmp(rte_bus_name(rte_dev_bus(device)), "pci") == 0;
}

/* Let a device read and write the arena. Virtual ports are programs and need not be told. */
int vd_map(uint16_t port, struct vd_pool *pool)
{
	if (!is_pci(port))
		return 0;
	if (!pool->is_registered && rte_extmem_register(pool->arena, pool->bytes, NULL, 0, pool->page) != 0)
		return -rte_errno;
	pool->is_registered = 1;
	return rte_dev_dma_map(device_of(port), pool->arena, (uintptr_t)pool->arena, pool->bytes) == 0 ? 0 : -rte_errno;
}

static void unmap(uint16_t port, const struct vd_pool *pool)
{
	if (pool != NULL && is_pci(port))
		rte_dev_dma_unmap(device_of(port), pool->arena, (uintptr_t)pool->arena, pool->bytes);
}

#define CHECKSUMS (RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM)
#define TSO (RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | CHECKSUMS | RTE_ETH_TX_OFFLOAD_MULTI_SEGS)

int vd_describe(uint16_t port, struct vd_info *out)
{
	struct rte_eth_dev_info info;
	int code = rte_eth_dev_info_get(port, &info);

	if (code != 0)
		return code;
	memset(out, 0, sizeof(*out));
	snprintf(out->driver, sizeof(out->driver), "%s", info.driver_name == NULL ? "" : info.driver_name);
	out->max_rx_queues = info.max_rx_queues;
	out->max_tx_queues = info.max_tx_queues;
	out->max_mtu = info.max_mtu;
	out->min_mtu = info.min_mtu;
	out->min_rx_bytes = info.min_rx_bufsize;
	out->max_rx_desc = info.rx_desc_lim.nb_max;
	out->max_tx_desc = info.tx_desc_lim.nb_max;
	out->min_rx_desc = info.rx_desc_lim.nb_min;
	out->min_tx_desc = info.tx_desc_lim.nb_min;
	out->rx_desc_align = info.rx_desc_lim.nb_align;
	out->tx_desc_align = info.tx_desc_lim.nb_align;
	if ((info.tx_offload_capa & CHECKSUMS) == CHECKSUMS)
		out->can |= VD_CAN_CHECKSUM;
	if ((info.tx_offload_capa & TSO) == TSO)
		out->can |= VD_CAN_TSO;
	if (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS)
		out->can |= VD_CAN_SEGMENTS;
	if (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER)
		out->can |= VD_CAN_SCATTER;
	out->is_pci = is_pci(port);
	return 0;
}

int vd_configure(uint16_t port, struct vd_conf *wanted, struct vd_pool *pool)
{
	struct rte_eth_conf conf = { .rxmode = { .mtu = wanted->mtu } };
	struct rte_eth_dev_info info;
	struct rte_eth_rxconf rx;
	struct rte_eth_txconf tx;
	uint16_t queue;
	int socket = rte_eth_dev_socket_id(port);
	int code = rte_eth_dev_info_get(port, &info);

	if (code != 0)
		return code;
	if (wanted->use & VD_CAN_SCATTER)
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
	if (wanted->use & VD_CAN_SEGMENTS)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (wanted->use & VD_CAN_CHECKSUM)
		conf.txmode.offloads |= CHECKSUMS;
	if (wanted->use & VD_CAN_TSO)
		conf.txmode.offloads |= TSO;
	if (wanted->rx_queues > 1 && info.flow_type_rss_offloads != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
			info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
	}
	code = rte_eth_dev_configure(port, wanted->rx_queues, wanted->tx_queues, &conf);
	if (code == 0)
		code = rte_eth_dev_adjust_nb_rx_tx_desc(port, &wanted->rx_desc, &wanted->tx_desc);
	rx = info.default_rxconf;
	rx.offloads = conf.rxmode.offloads;
	tx = info.default_txconf;
	tx.offloads = conf.txmode.offloads;
	for (queue = 0; code == 0 && queue < wanted->rx_queues; queue++)
		code = rte_eth_rx_queue_setup(port, queue, wanted->rx_desc, socket, &rx, pool->mp);
	for (queue = 0; code == 0 && queue < wanted->tx_queues; queue++)
		code = rte_eth_tx_queue_setup(port, queue, wanted->tx_desc, socket, &tx);
	return code;
}

int vd_run(uint16_t port)
{
	int code = rte_eth_dev_start(port);

	/* Groups are sorted out by the graph. A port that filters none has nothing to switch on. */
	if (code == 0)
		rte_eth_allmulticast_enable(port);
	return code;
}

/* End a port. What it holds goes back to the pool; what lies in a software ring has to be taken out first. */
void vd_close(uint16_t port, const struct vd_pool *pool, int runs)
{
	struct rte_eth_dev_info info;
	struct rte_mbuf *packets[VD_BURST];
	uint16_t queue, count, round;

	if (runs && rte_eth_dev_info_get(port, &info) == 0 && strcmp(info.driver_name, "net_ring") == 0)
		for (queue = 0; queue < info.nb_rx_queues; queue++)
			for (round = 0; round < 4096; round++) {
				count = rte_eth_rx_burst(port, queue, packets, VD_BURST);
				if (count == 0)
					break;
				rte_pktmbuf_free_bulk(packets, count);
			}
	if (runs)
		rte_eth_dev_stop(port);
	unmap(port, pool);
	remove_device(port);
}

int vd_mac(uint16_t port, uint8_t *mac)
{
	struct rte_ether_addr address;
	int code = rte_eth_macaddr_get(port, &address);

	if (code == 0)
		memcpy(mac, address.addr_bytes, RTE_ETHER_ADDR_LEN);
	return code;
}

int vd_set_mac(uint16_t port, const uint8_t *mac)
{
	struct rte_ether_addr address;

	memcpy(address.addr_bytes, mac, RTE_ETHER_ADDR_LEN);
	return rte_eth_dev_default_mac_addr_set(port, &address);
}

int vd_set_mtu(uint16_t port, uint16_t mtu)
{
	return rte_eth_dev_set_mtu(port, mtu);
}

int vd_set_promiscuous(uint16_t port, int on)
{
	return on ? rte_eth_promiscuous_enable(port) : rte_eth_promiscuous_disable(port);
}

int vd_set_link(uint16_t port, int up)
{
	return up ? rte_eth_dev_set_link_up(port) : rte_eth_dev_set_link_down(port);
}

int vd_link(uint16_t port, struct vd_link *out)
{
	struct rte_eth_link link;
	int code = rte_eth_link_get_nowait(port, &link);

	if (code == 0) {
		out->up = link.link_status == RTE_ETH_LINK_UP;
		out->mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
		out->full_duplex = link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX;
	}
	return code;
}

int vd_stats(uint16_t port, struct vd_stats *out)
{
	struct rte_eth_stats stats;
	int code = rte_eth_stats_get(port, &stats);

	if (code != 0)
		return code;
	*out = (struct vd_stats){
		.rx_packets = stats.ipackets,
		.tx_packets = stats.opackets,
		.rx_bytes = stats.ibytes,
		.tx_bytes = stats.obytes,
		.rx_missed = stats.imissed,
		.rx_errors = stats.ierrors,
		.tx_errors = stats.oerrors,
		.rx_no_buffer = stats.rx_nombuf,
	};
	for (int queue = 0; queue < RTE_MIN(16, RTE_ETHDEV_QUEUE_STAT_CNTRS); queue++) {
		out->queue_rx[queue] = stats.q_ipackets[queue];
		out->queue_tx[queue] = stats.q_opackets[queue];
	}
	return 0;
}

/* Note the segments of a packet, and part them: each slot goes its own way from here. */
static uint32_t note(const struct vd_pool *pool, struct rte_mbuf *m, struct vd_segment *out)
{
	uint32_t n = 0;

	while (m != NULL) {
		struct rte_mbuf *next = m->next;
		struct vd_segment *s = &out[n++];
		int mine = m->pool == pool->mp && RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1;

		s->slot = mine ? slot_of(pool, m) : UINT32_MAX;
		s->at = pool->front + m->data_off;
		s->len = m->data_len;
		s->more = next != NULL;
		s->foreign = mine ? NULL : m;
		m->next = NULL;
		m->nb_segs = 1;
		m = next;
	}
	return n;
}

/* Receive up to `most` packets; returns how many segments they have. `out` has room for VD_ROOM. */
uint32_t vd_receive(const struct vd_pool *pool, uint16_t port, uint16_t queue, struct vd_segment *out, uint32_t most,
		    uint32_t *lost)
{
	struct rte_mbuf *packets[VD_BURST];
	uint32_t segments = 0, taken = 0;

	*lost = 0;
	while (taken < most && segments + VD_BURST * VD_SEGMENTS <= VD_ROOM) {
		uint16_t asked = RTE_MIN(most - taken, (uint32_t)VD_BURST);
		uint16_t n = rte_eth_rx_burst(port, queue, packets, asked);

		for (uint16_t i = 0; i < n; i++) {
			if (i + 4 < n)
				rte_prefetch0(packets[i + 4]);
			if (unlikely(packets[i]->nb_segs > VD_SEGMENTS)) {
				rte_pktmbuf_free(packets[i]);
				++*lost;
				continue;
			}
			segments += note(pool, packets[i], out + segments);
		}
		taken += n;
		if (n < asked)
			break;
	}
	return segments;
}

/* Bytes of a segment that is not in the arena. */
uint32_t vd_copy(const void *foreign, uint8_t *out, uint32_t room)
{
	const struct rte_mbuf *m = foreign;
	uint32_t length = RTE_MIN((uint32_t)m->data_len, room);

	memcpy(out, rte_pktmbuf_mtod(m, const uint8_t *), length);
	return length;
}

void vd_free(void *foreign)
{
	rte_pktmbuf_free_seg(foreign);
}

static struct rte_mbuf *build(const struct vd_pool *pool, const struct vd_packet *packet, const struct vd_segment *segments)
{
	struct rte_mbuf *head = pool->of_slot[segments[0].slot];
	struct rte_mbuf *m = head;
	uint32_t length = 0;

	for (uint16_t i = 0; i < packet->segments; i++) {
		if (i > 0)
			m = m->next = pool->of_slot[segments[i].slot];
		m->data_off = segments[i].at - pool->front;
		m->data_len = segments[i].len;
		m->ol_flags = 0;
		length += segments[i].len;
	}
	m->next = NULL;
	head->nb_segs = packet->segments;
	head->pkt_len = length;
	head->tx_offload = 0;
	if (packet->wants != 0) {
		head->l2_len = packet->l2;
		head->l3_len = packet->l3;
		head->l4_len = packet->l4;
		head->tso_segsz = packet->gso;
		if (packet->wants & VD_IP4)
			head->ol_flags |= RTE_MBUF_F_TX_IPV4;
		if (packet->wants & VD_IP6)
			head->ol_flags |= RTE_MBUF_F_TX_IPV6;
		if (packet->wants & VD_TCP)
			head->ol_flags |= RTE_MBUF_F_TX_TCP_CKSUM;
		if (packet->wants & VD_UDP)
			head->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM;
		if (packet->gso != 0)
			head->ol_flags |= RTE_MBUF_F_TX_TCP_SEG |
					  (packet->wants & VD_IP4 ? RTE_MBUF_F_TX_IP_CKSUM : 0);
	}
	return head;
}

/* A packet that the port did not take is ours again, in parts. */
static void unbuild(struct rte_mbuf *m)
{
	while (m != NULL) {
		struct rte_mbuf *next = m->next;

		m->next = NULL;
		m->nb_segs = 1;
		m = next;
	}
}

static void burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint8_t *fate, uint16_t count, int wants)
{
	uint16_t at = 0;

	while (at < count) {
		uint16_t n = count - at, sent;

		if (wants) {
			n = rte_eth_tx_prepare(port, queue, packets + at, n);
			if (n < count - at) {
				fate[at + n] = VD_REFUSED;
				unbuild(packets[at + n]);
			}
		}
		sent = n == 0 ? 0 : rte_eth_tx_burst(port, queue, packets + at, n);
		memset(fate + at, VD_SENT, sent);
		for (uint16_t i = sent; i < n; i++) {
			fate[at + i] = VD_FULL;
			unbuild(packets[at + i]);
		}
		/* Behind one that was refused. */
		at += n + 1;
	}
}

/* Send packets in order; what became of each is in `fate`. The slots of those that were sent are the port's. */
void vd_send(const struct vd_pool *pool, uint16_t port, uint16_t queue, const struct vd_packet *packets,
	     const struct vd_segment *segments, uint8_t *fate, uint16_t count)
{
	struct rte_mbuf *mbufs[256];
	uint16_t at, n;

	for (at = 0; at < count; at += n) {
		int wants = 0;

		for (n = 0; n < 256 && at + n < count; n++) {
			mbufs[n] = build(pool, &packets[at + n], segments);
			segments += packets[at + n].segments;
			wants |= packets[at + n].wants;
		}
		burst(port, queue, mbufs, fate + at, n, wants != 0);
	}
}
