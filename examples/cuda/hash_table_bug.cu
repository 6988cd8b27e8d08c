// SPDX-License-Identifier: Apache-2.0
// Bug: a lock without fences, so that its next holder may not see what the last one wrote.
// rung emulate: race in line 30
#include <cstdio>
#include <vector>

constexpr int BUCKETS = 16, KEYS = 100, NONE = -1;

struct Table {
  int lock[BUCKETS], first[BUCKETS];             // of a bucket's list of entries
  int key[KEYS], count[KEYS], next[KEYS], used;  // entries
};

__global__ void insert(const int* keys, int n, Table* table) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int bucket = keys[i] * 7 % BUCKETS;
  bool done = false;
  while (!done) {  // not while (!locked): on older chips a warp's lanes would wait for each other
    if (atomicCAS(&table->lock[bucket], 0, 1) == 0) {
      int entry = table->first[bucket];
      while (entry != NONE && table->key[entry] != keys[i]) entry = table->next[entry];
      if (entry == NONE) {
        entry = atomicAdd(&table->used, 1);
        table->key[entry] = keys[i];
        table->count[entry] = 0;
        table->next[entry] = table->first[bucket];
        table->first[bucket] = entry;
      }
      ++table->count[entry];
      atomicExch(&table->lock[bucket], 0);
      done = true;
    }
  }
}

int main() {
  const int n = 1000;
  std::vector<int> keys(n), wanted(KEYS), counts(KEYS);
  for (int i = 0; i < n; ++i) ++wanted[keys[i] = i * i % KEYS];
  Table table = {};
  for (int& first : table.first) first = NONE;
  int* keys_device;
  Table* table_device;
  cudaMalloc(&keys_device, n * sizeof(int));
  cudaMalloc(&table_device, sizeof(Table));
  cudaMemcpy(keys_device, keys.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(table_device, &table, sizeof(Table), cudaMemcpyHostToDevice);

  insert<<<(n + 127) / 128, 128>>>(keys_device, n, table_device);
  cudaMemcpy(&table, table_device, sizeof(Table), cudaMemcpyDeviceToHost);

  for (int entry = 0; entry < table.used && entry < KEYS; ++entry) {
    counts[table.key[entry]] += table.count[entry];
  }
  int wrong = 0;
  for (int key = 0; key < KEYS; ++key) wrong += counts[key] != wanted[key];
  std::printf("hash_table_bug: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(keys_device);
  cudaFree(table_device);
  return wrong == 0 ? 0 : 1;
}
