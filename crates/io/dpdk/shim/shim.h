/*
 * What libdpdk has as inline functions or as structures that change between releases, as plain functions over plain
 * structures. No decisions are made here. The same declarations stand in src/sys.rs.
 */
#ifndef VOLLEY_DPDK_SHIM_H
#define VOLLEY_DPDK_SHIM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes from one slot of the arena to the next; checked in vd_pool_new. */
#define VD_STRIDE 2368
/* Packets asked of a port at once. */
#define VD_BURST 32
/* The most segments of a packet. */
#define VD_SEGMENTS 64
/* Room for segments that vd_receive wants. */
#define VD_ROOM 4096

/* A part of a packet: `len` bytes from byte `at` of slot `slot`. */
struct vd_segment {
	uint32_t slot;
	uint16_t at;
	uint16_t len;
	/* Received: the next segment belongs to the same packet. */
	uint32_t more;
	uint32_t unused;
	/* Received: not in a slot of the arena. To be copied by vd_copy and freed by vd_free. */
	void *foreign;
};

/* A packet to be sent: its next `segments` segments, and what the port is to do with it. */
struct vd_packet {
	uint16_t segments;
	uint16_t l2;
	uint16_t l3;
	uint16_t l4;
	/* Payload bytes of each segment to be cut; 0: none. */
	uint16_t gso;
	/* VD_* */
	uint16_t wants;
};

#define VD_TCP 1
#define VD_UDP 2
#define VD_IP4 4
#define VD_IP6 8

/* What became of a packet. */
#define VD_SENT 0
#define VD_FULL 1
#define VD_REFUSED 2

struct vd_info {
	char driver[64];
	uint16_t max_rx_queues;
	uint16_t max_tx_queues;
	uint16_t max_mtu;
	uint16_t min_mtu;
	uint32_t min_rx_bytes;
	uint16_t max_rx_desc;
	uint16_t max_tx_desc;
	uint16_t min_rx_desc;
	uint16_t min_tx_desc;
	uint16_t rx_desc_align;
	uint16_t tx_desc_align;
	/* VD_CAN_* */
	uint32_t can;
	uint32_t is_pci;
};

#define VD_CAN_CHECKSUM 1
#define VD_CAN_TSO 2
#define VD_CAN_SEGMENTS 4
#define VD_CAN_SCATTER 8

struct vd_conf {
	uint16_t rx_queues;
	uint16_t tx_queues;
	/* Descriptors; put within the port's limits. */
	uint16_t rx_desc;
	uint16_t tx_desc;
	uint16_t mtu;
	/* VD_CAN_* that are to be used. */
	uint16_t use;
};

struct vd_link {
	uint32_t up;
	uint32_t mbps;
	uint32_t full_duplex;
};

struct vd_stats {
	uint64_t rx_packets;
	uint64_t tx_packets;
	uint64_t rx_bytes;
	uint64_t tx_bytes;
	uint64_t rx_missed;
	uint64_t rx_errors;
	uint64_t tx_errors;
	uint64_t rx_no_buffer;
	uint64_t queue_rx[16];
	uint64_t queue_tx[16];
};

struct vd_pool;

int vd_start(int argc, char **argv);
size_t vd_complaint(char *out, size_t room);
const char *vd_version(void);
int vd_errno(void);
const char *vd_error(int code);

struct vd_pool *vd_pool_new(const char *name, uint8_t *arena, size_t bytes, size_t page, uint32_t slots, uint32_t stride,
			    uint32_t front, uint32_t room);
void vd_pool_free(struct vd_pool *pool);
uint32_t vd_pool_level(const struct vd_pool *pool);
void vd_pool_put(struct vd_pool *pool, const uint32_t *slots, uint32_t count);
uint32_t vd_pool_take(struct vd_pool *pool, uint32_t *slots, uint32_t count);

int vd_probe(const char *device, uint16_t *port);
int vd_map(uint16_t port, struct vd_pool *pool);
int vd_describe(uint16_t port, struct vd_info *info);
int vd_configure(uint16_t port, struct vd_conf *conf, struct vd_pool *pool);
int vd_run(uint16_t port);
void vd_close(uint16_t port, const struct vd_pool *pool, int runs);
int vd_mac(uint16_t port, uint8_t *mac);
int vd_set_mac(uint16_t port, const uint8_t *mac);
int vd_set_mtu(uint16_t port, uint16_t mtu);
int vd_set_promiscuous(uint16_t port, int on);
int vd_set_link(uint16_t port, int up);
int vd_link(uint16_t port, struct vd_link *link);
int vd_stats(uint16_t port, struct vd_stats *stats);

uint32_t vd_receive(const struct vd_pool *pool, uint16_t port, uint16_t queue, struct vd_segment *out, uint32_t most,
		    uint32_t *lost);
uint32_t vd_copy(const void *foreign, uint8_t *out, uint32_t room);
void vd_free(void *foreign);
void vd_send(const struct vd_pool *pool, uint16_t port, uint16_t queue, const struct vd_packet *packets,
	     const struct vd_segment *segments, uint8_t *fate, uint16_t count);

#endif
