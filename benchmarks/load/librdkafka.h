/* The few functions of librdkafka's stable interface that rdkafka.c calls.
 *
 * Declared here because the library comes with the confluent-kafka wheel, which has no headers.
 */
#ifndef OTTLA_LIBRDKAFKA_H
#define OTTLA_LIBRDKAFKA_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct rd_kafka_s client;
typedef struct rd_kafka_conf_s conf;
typedef struct rd_kafka_topic_s client_topic;
typedef struct rd_kafka_queue_s queue;

typedef struct {
    int err;
    client_topic *topic;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *opaque;
} message;

typedef struct {
    char *topic;
    int32_t partition;
    int64_t offset;
} partition_position;

typedef struct partition_list_s partition_list;

enum { PRODUCER = 0, CONSUMER = 1, CONF_OK = 0, COPY = 2 };
enum { QUEUE_FULL = -184, PARTITION_EOF = -191, FROM_BEGINNING = -2, FROM_END = -1 };

conf *rd_kafka_conf_new(void);
int rd_kafka_conf_set(conf *, const char *name, const char *value, char *error, size_t);
void rd_kafka_conf_set_dr_msg_cb(conf *, void (*)(client *, const message *, void *));
void rd_kafka_conf_set_error_cb(conf *, void (*)(client *, int, const char *, void *));
client *rd_kafka_new(int type, conf *, char *error, size_t);
client_topic *rd_kafka_topic_new(client *, const char *name, void *);
int rd_kafka_produce(client_topic *, int32_t partition, int flags, void *payload, size_t,
                     const void *key, size_t, void *opaque);
int rd_kafka_last_error(void);
const char *rd_kafka_err2str(int);
const char *rd_kafka_err2name(int);
int rd_kafka_poll(client *, int timeout_ms);
int rd_kafka_flush(client *, int timeout_ms);
int rd_kafka_outq_len(client *);
partition_list *rd_kafka_topic_partition_list_new(int size);
partition_position *rd_kafka_topic_partition_list_add(partition_list *, const char *, int32_t);
int rd_kafka_assign(client *, const partition_list *);
queue *rd_kafka_queue_get_consumer(client *);
ssize_t rd_kafka_consume_batch_queue(queue *, int timeout_ms, message **, size_t);
message *rd_kafka_consumer_poll(client *, int timeout_ms);
void rd_kafka_message_destroy(message *);
#endif
