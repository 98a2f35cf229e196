/* Load on raw sockets, cheap enough that the broker is the limit.
 *
 * One thread, epoll and requests built beforehand (Produce 9, Fetch 12). Modes (-m):
 *   produce  a batch to one partition per request; with -P the requests go round the partitions,
 *            with -K each connection keeps to one of them; with -N each request has a batch for so
 *            many partitions; with -I every connection is an idempotent producer with acks=all
 *   frame    the same bytes, but any framed reply will do: for servers that only frame
 *   fetch    from offset 0 on, and again from there when the end is reached
 *   tail     one producer (paced by -R), and -c consumers that wait at the end of its partition
 *   again    the requests of the file -F over and over, a connection each; -E says how many bytes
 *            before the end of an answer its error code is; -R paces them all together,
 *            and after -n of them it ends
 *   file     write -n batches, as a broker would store them, to the file -T
 * The report is one line of JSON (measure.h).
 */
#include "wire.h"

#include "measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

enum { STAGED_BYTES_MAX = 262144, SENT_TIMES = 1 << 22, WAIT_MS = 500 };

typedef enum { PRODUCE, FETCH, AGAIN } kind;

typedef struct {
    kind kind;
    int fd, partition, wants_room;
    buffer request;                           /* the template, and where to patch it: */
    size_t correlation_at, partition_at, offset_at, batch_at, batch_size;
    uint8_t *out, *stage, *in;
    size_t out_size, out_sent, stage_size, in_size, in_capacity;
    double *sent_at;                          /* of the requests in flight */
    uint32_t head, tail;
    int64_t offset;
} connection;

static const char *mode = "produce", *topic = "bench";
static int port = 9092, connections = 1, depth = 1, value_bytes = 100, records_per_batch = 1;
static int partitions = 1, keeps_partition, fetch_bytes_max = 1 << 20;
static int batches_per_request = 1, is_idempotent;
static double seconds_max = 5, rate;
static long batches_max;
static const char *broker_pids = "";
static uint64_t bytes_max = UINT64_MAX;
static const char *requests_path;
static int error_before_end;
static buffer requests_file;

static connection *all;
static int connection_count, poller, timer = -1;
static uint64_t done, issued, allowed, bytes_in, bytes_out, records;
static double ends_at;
static double *record_sent_at; /* tail: when the record of each offset left */
static int64_t first_offset, produced_end;

static int is_tail(void) { return mode[0] == 't'; }
static int is_again(void) { return mode[0] == 'a'; }

/* ---- requests ---- */
static void put_header(connection *c, int api_key, int version) {
    buffer *b = &c->request;
    put_i32(b, 0);
    put_i16(b, (int16_t)api_key);
    put_i16(b, (int16_t)version);
    c->correlation_at = b->size;
    put_i32(b, 0);
    put_i16(b, 9);
    put_raw(b, "benchmark", 9);
    put_i8(b, 0);
}

static void build_produce(connection *c) {
    buffer *b = &c->request, batch = {0};
    put_batch(&batch, records_per_batch, value_bytes);
    if (is_idempotent) {
        set_u64(batch.data + 43, (uint64_t)getpid() << 16 | (uint64_t)(c - all));
        set_u16(batch.data + 51, 0);
    }
    put_header(c, 0, 9);
    put_uvarint(b, 0);
    put_i16(b, is_idempotent ? -1 : 1);
    put_i32(b, 30000);
    put_uvarint(b, 2);
    put_compact_string(b, topic);
    put_uvarint(b, (uint64_t)batches_per_request + 1);
    c->partition_at = b->size;
    for (int i = 0; i < batches_per_request; i++) {
        put_i32(b, c->partition + i);
        put_uvarint(b, batch.size + 1);
        if (i == 0)
            c->batch_at = b->size;
        put_raw(b, batch.data, batch.size);
        put_i8(b, 0);
    }
    put_raw(b, "\0\0", 2);
    c->batch_size = batch.size;
    set_u32(b->data, (uint32_t)(b->size - 4));
    free(batch.data);
}

static void build_fetch(connection *c) {
    buffer *b = &c->request;
    put_header(c, 1, 12);
    put_i32(b, -1);
    put_i32(b, WAIT_MS);
    put_i32(b, 1);
    put_i32(b, fetch_bytes_max);
    put_i8(b, 0);
    put_i32(b, 0);
    put_i32(b, -1);
    put_uvarint(b, 2);
    put_compact_string(b, topic);
    put_uvarint(b, 2);
    put_i32(b, c->partition);
    put_i32(b, -1);
    c->offset_at = b->size;
    put_i64(b, 0);
    put_i32(b, -1);
    put_i64(b, -1);
    put_i32(b, fetch_bytes_max);
    put_raw(b, "\0\0\1\1\0", 5); /* two ends of structs, no forgotten topics, no rack, the end */
    set_u32(b->data, (uint32_t)(b->size - 4));
}

static void read_requests(void) {
    uint8_t chunk[65536];
    FILE *file = fopen(requests_path, "r");
    if (!file)
        die(requests_path);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        put_raw(&requests_file, chunk, n);
    fclose(file);
}

/* The next one of the file, and from its start when all were taken. */
static void build_again(connection *c) {
    static size_t at;
    size_t size = 4 + get_u32(requests_file.data + at);
    put_raw(&c->request, requests_file.data + at, size);
    c->correlation_at = 8;
    at = at + size < requests_file.size ? at + size : 0;
}

/* The next batch of its producer, for each partition of the request. */
static void patch_sequences(connection *c) {
    size_t stride = (c->request.size - 2 - c->partition_at) / (size_t)batches_per_request;
    for (int i = 0; i < batches_per_request; i++) {
        uint8_t *batch = c->request.data + c->batch_at + (size_t)i * stride;
        set_u32(batch + 53, c->head * (uint32_t)records_per_batch);
        set_u32(batch + 17, crc32c(batch + 21, c->batch_size - 21));
    }
}

static void patch(connection *c) {
    set_u32(c->request.data + c->correlation_at, c->head);
    if (c->kind == FETCH)
        set_u64(c->request.data + c->offset_at, (uint64_t)c->offset);
    else if (c->kind == PRODUCE && partitions > 1 && !keeps_partition)
        set_u32(c->request.data + c->partition_at, (uint32_t)(issued % (uint64_t)partitions));
    if (is_idempotent && c->kind == PRODUCE)
        patch_sequences(c);
    c->sent_at[c->head++ % (uint32_t)depth] = now_s();
    issued++;
    if (is_tail() && c->kind == PRODUCE)
        record_sent_at[produced_end++ % SENT_TIMES] = now_s();
}

/* ---- sending ---- */
static void watch_room(connection *c, int wants) {
    if (c->wants_room == wants)
        return;
    c->wants_room = wants;
    struct epoll_event e = {.events = EPOLLIN | (wants ? EPOLLOUT : 0u), .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &e);
}

static int may_send(connection *c) {
    int room = depth - (int)(c->head - c->tail);
    if (room <= 0)
        return 0;
    if (c->kind == FETCH && is_tail())
        return 1;
    if (now_s() >= ends_at || bytes_out >= bytes_max)
        return 0;
    if (is_again() && batches_max && issued >= (uint64_t)batches_max)
        return 0;
    if (is_again() && rate > 0)
        return issued < allowed;
    if (rate > 0) {
        int allowance = (int)(allowed - (uint64_t)(produced_end - first_offset));
        return allowance < room ? allowance : room;
    }
    return room;
}

/* Small requests are staged side by side so that one send() carries them. */
static void stage(connection *c, int count) {
    size_t size = c->request.size;
    size_t most = STAGED_BYTES_MAX / size + 1;
    if ((size_t)count > most)
        count = (int)most;
    c->out_sent = 0;
    c->out_size = (size_t)count * size;
    if (count == 1) {
        patch(c);
        c->out = c->request.data;
        return;
    }
    if (c->stage_size < c->out_size) {
        c->stage_size = c->out_size;
        if (!(c->stage = realloc(c->stage, c->stage_size)))
            die("realloc");
    }
    for (int i = 0; i < count; i++) {
        patch(c);
        memcpy(c->stage + (size_t)i * size, c->request.data, size);
    }
    c->out = c->stage;
}

static void pump(connection *c) {
    for (;;) {
        if (c->out_sent == c->out_size) {
            int count = may_send(c);
            if (count <= 0) {
                watch_room(c, 0);
                return;
            }
            stage(c, count);
        }
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_size - c->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            watch_room(c, 1);
            return;
        }
        if (n < 0)
            die("send");
        c->out_sent += (size_t)n;
        bytes_out += (uint64_t)n;
    }
}

/* ---- receiving ---- */
static void fail(const char *what, long number) {
    fprintf(stderr, "%s %ld\n", what, number);
    exit(2);
}

static void on_produced(const uint8_t *p) {
    p += 1 + 1 + 1 + strlen(topic) + 1 + 4; /* Each partition takes 33 bytes. */
    for (int i = 0; i < batches_per_request; i++, p += 33) {
        if (get_i16(p))
            fail("Produce was answered with error", get_i16(p));
    }
}

static void on_answered(const uint8_t *frame_end) {
    int error = get_i16(frame_end - error_before_end);
    if (error)
        fail("a request was answered with error", error);
}

static void delivered(int64_t from, int64_t to) {
    double t = now_s();
    for (int64_t offset = from; offset < to; offset++)
        note_latency(t - record_sent_at[offset % SENT_TIMES]);
}

static void on_fetched(connection *c, const uint8_t *p, const uint8_t *frame_end) {
    p += 1 + 4 + 2 + 4 + 1 + 1 + strlen(topic) + 1 + 4;
    int error = get_i16(p);
    if (error)
        fail("Fetch was answered with error", error);
    int64_t high_watermark = (int64_t)get_u64(p + 2), before = c->offset;
    p += 2 + 24;
    take_uvarint(&p); /* no aborted transactions */
    p += 4;
    uint64_t size = take_uvarint(&p);
    const uint8_t *end = p + (size ? size - 1 : 0);
    if (end > frame_end)
        fail("a Fetch response ends early by bytes:", end - frame_end);
    while (end - p >= 61 && (size_t)(end - p) >= 12 + (size_t)get_u32(p + 8)) {
        int64_t next = (int64_t)get_u64(p) + get_u32(p + 23) + 1;
        if (next > c->offset)
            c->offset = next;
        p += 12 + get_u32(p + 8);
    }
    records += (uint64_t)(c->offset - before);
    if (is_tail())
        delivered(before, c->offset);
    else if (c->offset >= high_watermark)
        c->offset = 0;
}

static void on_reply(connection *c, const uint8_t *frame, uint32_t size) {
    uint32_t correlation = get_u32(frame + 4);
    if (correlation != c->tail)
        fail("a reply out of order:", correlation);
    if (c->kind == FETCH)
        on_fetched(c, frame + 8, frame + 4 + size);
    else if (c->kind == AGAIN)
        on_answered(frame + 4 + size);
    else if (mode[0] != 'f')
        on_produced(frame + 8);
    double sent_at = c->sent_at[c->tail++ % (uint32_t)depth];
    if (!is_tail())
        note_latency(now_s() - sent_at);
    done++;
}

static void take_replies(connection *c) {
    size_t position = 0;
    while (c->in_size - position >= 4) {
        uint32_t size = get_u32(c->in + position);
        if (c->in_size - position - 4 < size) {
            if (size + 4 + 65536 > c->in_capacity) {
                c->in_capacity = size + 131072;
                c->in = realloc(c->in, c->in_capacity);
            }
            break;
        }
        on_reply(c, c->in + position, size);
        position += 4 + size;
    }
    if (position) {
        memmove(c->in, c->in + position, c->in_size - position);
        c->in_size -= position;
    }
}

static void readable(connection *c) {
    for (;;) {
        size_t room = c->in_capacity - c->in_size;
        ssize_t n = recv(c->fd, c->in + c->in_size, room, 0);
        if (n == 0)
            fail("the broker closed connection", c - all);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            die("recv");
        c->in_size += (size_t)n;
        bytes_in += (uint64_t)n;
        take_replies(c);
        pump(c);
        if ((size_t)n < room)
            return;
    }
}

/* ---- the run ---- */
/* ListOffsets 2, blocking: where the log ends. */
static int64_t log_end(int fd, int partition) {
    buffer b = {0};
    uint8_t reply[1024];
    size_t n = 0;
    put_i32(&b, 0);
    put_i16(&b, 2);
    put_i16(&b, 2);
    put_i32(&b, 0);
    put_i16(&b, -1);
    put_i32(&b, -1);
    put_i8(&b, 0);
    put_i32(&b, 1);
    put_i16(&b, (int16_t)strlen(topic));
    put_raw(&b, topic, strlen(topic));
    put_i32(&b, 1);
    put_i32(&b, partition);
    put_i64(&b, -1);
    set_u32(b.data, (uint32_t)(b.size - 4));
    if (send(fd, b.data, b.size, 0) != (ssize_t)b.size)
        die("send");
    free(b.data);
    while (n < 4 || n < 4 + get_u32(reply)) {
        ssize_t k = recv(fd, reply + n, sizeof reply - n, 0);
        if (k <= 0)
            die("ListOffsets");
        n += (size_t)k;
    }
    const uint8_t *p = reply + 8 + 4 + 4 + 2 + strlen(topic) + 4 + 4;
    if (get_i16(p))
        fail("ListOffsets was answered with error", get_i16(p));
    return (int64_t)get_u64(p + 2 + 8);
}

static void open_connection(connection *c, kind kind, int partition) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1;
    c->kind = kind;
    c->partition = partition;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    if (connect(c->fd, (void *)&address, sizeof address))
        die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (is_tail())
        c->offset = first_offset = produced_end = log_end(c->fd, partition);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->in_capacity = 262144;
    c->in = malloc(c->in_capacity);
    c->sent_at = calloc((size_t)depth, sizeof *c->sent_at);
    if (kind == FETCH)
        build_fetch(c);
    else if (kind == AGAIN)
        build_again(c);
    else
        build_produce(c);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &e);
}

static int partition_of(int number) {
    if (is_tail())
        return 0;
    if (keeps_partition && connections < partitions)
        return number * (partitions / connections); /* Spread over all of them. */
    return number % partitions;
}

static void open_all(void) {
    poller = epoll_create1(0);
    connection_count = connections + is_tail();
    all = calloc((size_t)connection_count, sizeof *all);
    kind kind = is_tail() || !strcmp(mode, "fetch") ? FETCH : is_again() ? AGAIN : PRODUCE;
    if (is_again())
        read_requests();
    for (int i = 0; i < connections; i++)
        open_connection(all + i, kind, partition_of(i));
    if (is_tail()) {
        record_sent_at = calloc(SENT_TIMES, sizeof *record_sent_at);
        open_connection(all + connections, PRODUCE, 0);
    }
    if (rate > 0) {
        long nanoseconds = (long)(1e9 / rate);
        struct timespec period = {nanoseconds / 1000000000, nanoseconds % 1000000000};
        struct itimerspec every = {period, period};
        timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        timerfd_settime(timer, 0, &every, NULL);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &timer};
        epoll_ctl(poller, EPOLL_CTL_ADD, timer, &e);
    }
}

static int is_finished(double t) {
    int is_all = is_again() && batches_max && done >= (uint64_t)batches_max;
    if (t < ends_at && bytes_out < bytes_max && !is_all)
        return 0;
    for (connection *c = all; c < all + connection_count; c++) {
        if (is_tail() && c->kind == FETCH ? c->offset < produced_end : c->head != c->tail)
            return 0;
    }
    return 1;
}

static void on_tick(void) {
    uint64_t ticks;
    if (read(timer, &ticks, sizeof ticks) == sizeof ticks)
        allowed += ticks;
    if (!is_again()) {
        pump(all + connections);
        return;
    }
    static int next; /* Each in turn, however many are due. */
    for (int tries = 0; issued < allowed && tries < connections; tries++)
        pump(all + next++ % connections);
}

static void run(void) {
    struct epoll_event events[256];
    for (int i = 0; i < connection_count; i++)
        pump(all + i);
    for (double t = now_s(); !is_finished(t); t = now_s()) {
        if (t > ends_at + 10)
            fail("requests outstanding 10 s after the end:", (long)(issued - done));
        int n = epoll_wait(poller, events, 256, 100);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &timer) {
                on_tick();
                continue;
            }
            connection *c = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                readable(c);
            if (events[i].events & EPOLLOUT)
                pump(c);
        }
    }
}

static void write_file(void) {
    buffer batch = {0};
    FILE *file = fopen(topic, "w");
    if (!file)
        die(topic);
    put_batch(&batch, records_per_batch, value_bytes);
    for (long i = 0; i < batches_max; i++) {
        set_u64(batch.data, (uint64_t)i * (uint64_t)records_per_batch);
        if (fwrite(batch.data, 1, batch.size, file) != batch.size)
            die("write");
    }
    fclose(file);
    printf("{\"batch_bytes\": %zu}\n", batch.size);
}

static void options(int count, char **values) {
    for (int o; (o = getopt(count, values, "m:p:c:d:s:r:P:K:N:I:T:t:b:M:R:i:n:F:E:")) != -1;) {
        switch (o) {
        case 'm': mode = optarg; break;
        case 'p': port = atoi(optarg); break;
        case 'c': connections = atoi(optarg); break;
        case 'd': depth = atoi(optarg); break;
        case 's': value_bytes = atoi(optarg); break;
        case 'r': records_per_batch = atoi(optarg); break;
        case 'P': partitions = atoi(optarg); break;
        case 'K': keeps_partition = atoi(optarg); break;
        case 'N': batches_per_request = atoi(optarg); break;
        case 'I': is_idempotent = atoi(optarg); break;
        case 'T': topic = optarg; break;
        case 't': seconds_max = atof(optarg); break;
        case 'b': bytes_max = strtoull(optarg, NULL, 10); break;
        case 'M': fetch_bytes_max = atoi(optarg); break;
        case 'R': rate = atof(optarg); break;
        case 'i': broker_pids = optarg; break;
        case 'n': batches_max = atol(optarg); break;
        case 'F': requests_path = optarg; break;
        case 'E': error_before_end = atoi(optarg); break;
        default: exit(1);
        }
    }
}

int main(int count, char **values) {
    options(count, values);
    crc_init();
    if (!strcmp(mode, "file")) {
        write_file();
        return 0;
    }
    latencies_us = malloc(LATENCIES_MAX * sizeof *latencies_us);
    open_all();
    double own = own_cpu_s(), broker = processes_cpu_s(broker_pids), start = now_s();
    ends_at = start + seconds_max;
    run();
    double seconds = now_s() - start;
    own = own_cpu_s() - own;
    broker = processes_cpu_s(broker_pids) - broker;
    int reads = all[0].kind == FETCH;
    double moved = reads ? (double)bytes_in : (double)bytes_out;
    double count_of_records = reads ? (double)records : (double)done * records_per_batch;
    print_report(seconds, (double)done, count_of_records, moved, own, broker);
    return 0;
}
