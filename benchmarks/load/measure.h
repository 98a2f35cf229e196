/* Clocks, CPU seconds and latencies: what both load generators report. */
#ifndef OTTLA_MEASURE_H
#define OTTLA_MEASURE_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define LATENCIES_MAX 20000000

static float *latencies_us;
static size_t latency_count;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double own_cpu_s(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

/* User and system time of other processes ("12,345"), all of their threads included. */
static double processes_cpu_s(const char *pids) {
    double ticks = 0;
    while (pids && *pids) {
        char path[64], line[1024], *next;
        snprintf(path, sizeof path, "/proc/%ld/stat", strtol(pids, &next, 10));
        pids = *next == ',' ? next + 1 : NULL;
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        size_t n = fread(line, 1, sizeof line - 1, file);
        line[n] = 0;
        fclose(file);
        char *after_name = strrchr(line, ')');
        unsigned long user, system;
        const char *fields = "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu";
        if (after_name && sscanf(after_name + 2, fields, &user, &system) == 2)
            ticks += (double)(user + system);
    }
    return ticks / (double)sysconf(_SC_CLK_TCK);
}

static void note_latency(double seconds) {
    if (latency_count < LATENCIES_MAX)
        latencies_us[latency_count++] = (float)(seconds * 1e6);
}

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static double latency_at(double fraction) {
    if (!latency_count)
        return 0;
    size_t i = (size_t)(fraction * (double)latency_count);
    return latencies_us[i < latency_count ? i : latency_count - 1];
}

/* One JSON object on one line: what the Python side reads. */
static void print_report(double seconds, double requests, double records, double bytes,
                         double own_s, double broker_s) {
    qsort(latencies_us, latency_count, sizeof *latencies_us, compare_floats);
    printf("{\"seconds\": %.4f, \"requests\": %.0f, \"records\": %.0f, \"bytes\": %.0f, "
           "\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, "
           "\"client_cpu_s\": %.3f, \"broker_cpu_s\": %.3f}\n",
           seconds, requests, records, bytes, latency_at(.5), latency_at(.99), latency_at(.999),
           own_s, broker_s);
}
#endif
