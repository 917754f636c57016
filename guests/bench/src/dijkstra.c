/*
 * Graphs: shortest paths by Dijkstra with a heap that knows where each node
 * is, breadth first search, a spanning tree by Kruskal with union-find, and
 * strongly connected components by Tarjan.
 */
#include "guest.h"

#define NODES 400
#define EDGES 2400
#define FAR 0xffffffffu

struct edge {
    uint16_t from, to;
    uint32_t weight;
};

static struct edge edges[EDGES];
static uint16_t first[NODES + 2]; /* edges are in the order of `from` */
static uint32_t distances[NODES];
static uint16_t heap[NODES], places[NODES];
static int heap_size;

/* --- the graph --- */

static void make_graph(uint64_t *random)
{
    static struct edge unordered[EDGES];
    uint16_t at[NODES + 1];

    for (int i = 0; i <= NODES + 1; i++)
        first[i] = 0;
    for (int i = 0; i < EDGES; i++) {
        uint64_t r = next_random(random);
        uint16_t from = (uint16_t)(r % NODES);

        /* Most edges lead somewhere near. */
        unordered[i].from = from;
        unordered[i].to = (uint16_t)(r >> 62 ? (from + 1 + (r >> 20) % 30) % NODES
                                             : (r >> 20) % NODES);
        unordered[i].weight = 1 + (uint32_t)(r >> 40) % 1000;
        first[from + 1]++;
    }
    for (int i = 0; i < NODES; i++) {
        first[i + 1] = (uint16_t)(first[i + 1] + first[i]);
        at[i] = first[i];
    }
    for (int i = 0; i < EDGES; i++)
        edges[at[unordered[i].from]++] = unordered[i];
}

/* --- Dijkstra --- */

static void put(int at, uint16_t node)
{
    heap[at] = node;
    places[node] = (uint16_t)at;
}

static void rise(int at)
{
    uint16_t node = heap[at];

    while (at > 0 && distances[heap[(at - 1) / 2]] > distances[node]) {
        put(at, heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(at, node);
}

static void sink(int at)
{
    uint16_t node = heap[at];

    for (;;) {
        int child = 2 * at + 1;

        if (child >= heap_size)
            break;
        if (child + 1 < heap_size && distances[heap[child + 1]] < distances[heap[child]])
            child++;
        if (distances[node] <= distances[heap[child]])
            break;
        put(at, heap[child]);
        at = child;
    }
    put(at, node);
}

static uint64_t shortest_paths(uint16_t start, uint64_t hash)
{
    heap_size = NODES;
    for (uint16_t i = 0; i < NODES; i++) {
        distances[i] = FAR;
        put(i, i);
    }
    distances[start] = 0;
    rise(places[start]);
    while (heap_size) {
        uint16_t node = heap[0];

        put(0, heap[--heap_size]);
        sink(0);
        if (distances[node] == FAR)
            break;
        hash = mix(hash, distances[node] ^ (uint64_t)node << 32);
        for (int i = first[node]; i < first[node + 1]; i++) {
            uint32_t longer = distances[node] + edges[i].weight;
            uint16_t to = edges[i].to;

            if (longer < distances[to]) {
                distances[to] = longer;
                rise(places[to]);
            }
        }
    }
    return hash;
}

/* --- breadth first --- */

static uint64_t levels(uint16_t start)
{
    static uint16_t queue[NODES];
    static uint8_t seen[NODES];
    int head = 0, tail = 0;
    uint64_t sum = 0, level = 0;

    for (int i = 0; i < NODES; i++)
        seen[i] = 0;
    queue[tail++] = start;
    seen[start] = 1;
    while (head < tail) {
        int end = tail;

        for (level++; head < end; head++) {
            uint16_t node = queue[head];

            for (int i = first[node]; i < first[node + 1]; i++) {
                if (!seen[edges[i].to]) {
                    seen[edges[i].to] = 1;
                    queue[tail++] = edges[i].to;
                    sum += level;
                }
            }
        }
    }
    return sum;
}

/* --- Kruskal --- */

static uint16_t parents[NODES];

static uint16_t find(uint16_t node)
{
    while (parents[node] != node) {
        parents[node] = parents[parents[node]];
        node = parents[node];
    }
    return node;
}

/* Sorts the numbers of edges by weight, a digit of five bits at a time. */
static void sort_by_weight(uint16_t *order, uint16_t *spare)
{
    for (int shift = 0; shift < 10; shift += 5) {
        int starts[33] = { 0 };

        for (int i = 0; i < EDGES; i++)
            starts[(edges[order[i]].weight >> shift & 31) + 1]++;
        for (int i = 0; i < 32; i++)
            starts[i + 1] += starts[i];
        for (int i = 0; i < EDGES; i++)
            spare[starts[edges[order[i]].weight >> shift & 31]++] = order[i];
        for (int i = 0; i < EDGES; i++)
            order[i] = spare[i];
    }
}

static uint64_t spanning_tree(void)
{
    static uint16_t order[EDGES], spare[EDGES];
    uint64_t total = 0;

    for (uint16_t i = 0; i < EDGES; i++)
        order[i] = i;
    for (uint16_t i = 0; i < NODES; i++)
        parents[i] = i;
    sort_by_weight(order, spare);
    for (int i = 0; i < EDGES; i++) {
        const struct edge *edge = &edges[order[i]];
        uint16_t a = find(edge->from), b = find(edge->to);

        if (a != b) {
            parents[a] = b;
            total += edge->weight;
        }
    }
    return total;
}

/* --- Tarjan --- */

static struct {
    uint16_t index[NODES], low[NODES], stack[NODES];
    uint8_t on_stack[NODES];
    uint16_t next, height;
    uint64_t components;
} tarjan;

static void connect(uint16_t node)
{
    uint16_t other;

    tarjan.index[node] = tarjan.low[node] = ++tarjan.next;
    tarjan.stack[tarjan.height++] = node;
    tarjan.on_stack[node] = 1;
    for (int i = first[node]; i < first[node + 1]; i++) {
        uint16_t to = edges[i].to;

        if (!tarjan.index[to]) {
            connect(to);
            if (tarjan.low[to] < tarjan.low[node])
                tarjan.low[node] = tarjan.low[to];
        } else if (tarjan.on_stack[to] && tarjan.index[to] < tarjan.low[node]) {
            tarjan.low[node] = tarjan.index[to];
        }
    }
    if (tarjan.low[node] != tarjan.index[node])
        return;
    do {
        other = tarjan.stack[--tarjan.height];
        tarjan.on_stack[other] = 0;
    } while (other != node);
    tarjan.components = tarjan.components * 3 + node;
}

static uint64_t components(void)
{
    tarjan.next = tarjan.height = 0;
    tarjan.components = 0;
    for (int i = 0; i < NODES; i++)
        tarjan.index[i] = tarjan.on_stack[i] = 0;
    for (uint16_t i = 0; i < NODES; i++) {
        if (!tarjan.index[i])
            connect(i);
    }
    return tarjan.components;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    for (uint64_t n = 0; n < iterations; n++) {
        make_graph(&random);
        hash = shortest_paths((uint16_t)(n % NODES), hash);
        hash = mix(hash, levels((uint16_t)(n * 7 % NODES)));
        hash = mix(hash, spanning_tree());
        hash = mix(hash, components());
    }
    return hash;
}
