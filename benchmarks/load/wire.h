/* What the raw load generator writes and reads: Kafka's primitive types and record batches. */
#ifndef OTTLA_WIRE_H
#define OTTLA_WIRE_H
#define _GNU_SOURCE
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void die(const char *what) {
    perror(what);
    exit(2);
}

/* ---- CRC-32C by table: used while a request is built, and for each batch with a sequence ---- */
static uint32_t crc_table[256];

static void crc_init(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? (c >> 1) ^ 0x82F63B78u : c >> 1;
        crc_table[i] = c;
    }
}

static uint32_t crc32c(const uint8_t *p, size_t n) {
    uint32_t c = ~0u;
    while (n--)
        c = crc_table[(c ^ *p++) & 255] ^ (c >> 8);
    return ~c;
}

/* ---- a growing buffer and Kafka's types ---- */
typedef struct {
    uint8_t *data;
    size_t size, capacity;
} buffer;

static void put_raw(buffer *b, const void *from, size_t n) {
    if (b->size + n > b->capacity) {
        while (b->size + n > b->capacity)
            b->capacity = b->capacity ? b->capacity * 2 : 4096;
        if (!(b->data = realloc(b->data, b->capacity)))
            die("realloc");
    }
    memcpy(b->data + b->size, from, n);
    b->size += n;
}

static void put_i8(buffer *b, int8_t v) { put_raw(b, &v, 1); }
static void put_i16(buffer *b, int16_t v) { v = (int16_t)htobe16((uint16_t)v); put_raw(b, &v, 2); }
static void put_i32(buffer *b, int32_t v) { v = (int32_t)htobe32((uint32_t)v); put_raw(b, &v, 4); }
static void put_i64(buffer *b, int64_t v) { v = (int64_t)htobe64((uint64_t)v); put_raw(b, &v, 8); }

static void put_uvarint(buffer *b, uint64_t v) {
    for (; v >= 128; v >>= 7)
        put_i8(b, (int8_t)(v | 128));
    put_i8(b, (int8_t)v);
}

static void put_varint(buffer *b, int64_t v) {
    put_uvarint(b, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

static void put_compact_string(buffer *b, const char *s) {
    put_uvarint(b, strlen(s) + 1);
    put_raw(b, s, strlen(s));
}

static void set_u16(uint8_t *p, uint16_t v) { v = htobe16(v); memcpy(p, &v, 2); }
static void set_u32(uint8_t *p, uint32_t v) { v = htobe32(v); memcpy(p, &v, 4); }
static void set_u64(uint8_t *p, uint64_t v) { v = htobe64(v); memcpy(p, &v, 8); }
static int16_t get_i16(const uint8_t *p) { return (int16_t)((p[0] << 8) | p[1]); }
static uint32_t get_u32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return be32toh(v); }
static uint64_t get_u64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return be64toh(v); }

static uint64_t take_uvarint(const uint8_t **p) {
    uint64_t v = 0;
    int shift = 0;
    for (; **p & 128; shift += 7)
        v |= (uint64_t)(*(*p)++ & 127) << shift;
    return v | (uint64_t)*(*p)++ << shift;
}

/* ---- a record batch, version 2, of `count` records with values of `value_bytes` ---- */
static void put_batch(buffer *out, int count, int value_bytes) {
    buffer records = {0}, one = {0};
    char *value = malloc((size_t)value_bytes + 1);
    for (int i = 0; i < value_bytes; i++)
        value[i] = (char)('a' + i % 26);
    for (int i = 0; i < count; i++) {
        one.size = 0;
        put_i8(&one, 0);
        put_varint(&one, 0);
        put_varint(&one, i);
        put_varint(&one, -1);
        put_varint(&one, value_bytes);
        put_raw(&one, value, (size_t)value_bytes);
        put_varint(&one, 0);
        put_varint(&records, (int64_t)one.size);
        put_raw(&records, one.data, one.size);
    }
    size_t start = out->size;
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    put_i64(out, 0);
    put_i32(out, (int32_t)(49 + records.size));
    put_i32(out, -1);
    put_i8(out, 2);
    put_i32(out, 0); /* the CRC, set below */
    put_i16(out, 0);
    put_i32(out, count - 1);
    put_i64(out, now_ms);
    put_i64(out, now_ms);
    put_i64(out, -1);
    put_i16(out, -1);
    put_i32(out, -1);
    put_i32(out, count);
    put_raw(out, records.data, records.size);
    set_u32(out->data + start + 17, crc32c(out->data + start + 21, out->size - start - 21));
    free(records.data);
    free(one.data);
    free(value);
}
#endif
