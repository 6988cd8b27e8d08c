// SPDX-License-Identifier: Apache-2.0
// Formats a report as JSON and as text.
#include <string>

#include "rung/core/text.hpp"
#include "rung/simt/record.hpp"

namespace rung::simt::record {
namespace {

using dialect::uint3;

std::string quoted(const std::string& text) {
  constexpr const char* digits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : valid_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string triple(const uint3& v) {
  return "[" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + "]";
}

/// Builder of a JSON object.
class Fields {
 public:
  Fields& raw(const char* name, const std::string& value) {
    text_ += (text_.empty() ? "\"" : ",\"") + std::string(name) + "\":" + value;
    return *this;
  }
  Fields& text(const char* name, const std::string& value) { return raw(name, quoted(value)); }
  Fields& number(const char* name, std::uint64_t value) { return raw(name, std::to_string(value)); }
  [[nodiscard]] std::string fields() const { return text_; }
  [[nodiscard]] std::string whole() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

template <class T, class F>
std::string list(const std::vector<T>& items, F to_text) {
  std::string out = "[";
  for (const T& item : items) out += (out.size() == 1 ? "" : ",") + to_text(item);
  return out + "]";
}

std::string one_fix(const Fix& fix) {
  Fields out;
  out.text("kind", fix.kind).text("file", fix.file);
  out.number("line", static_cast<std::uint64_t>(fix.line));
  out.text("from", fix.from).text("text", fix.text);
  return out.whole();
}

std::string one_finding(const Finding& f) {
  Fields out;
  out.text("kind", to_string(f.kind)).text("space", to_string(f.space)).text("kernel", f.kernel);
  out.text("file", f.file).number("line", static_cast<std::uint64_t>(f.line));
  out.text("other_file", f.other_file)
      .number("other_line", static_cast<std::uint64_t>(f.other_line));
  out.raw("block", triple(f.block)).raw("thread", triple(f.thread));
  if (f.kind == Kind::race || f.kind == Kind::barrier) {
    out.raw("other_block", triple(f.other_block)).raw("other_thread", triple(f.other_thread));
  }
  out.text("message", f.message).text("advice", f.advice).raw("fixes", list(f.fixes, one_fix));
  out.number("times", f.times);
  return out.whole();
}

void add_counters(Fields& out, const Counters& c) {
  out.number("global_load_requests", c.global_load_requests)
      .number("global_load_sectors", c.global_load_sectors)
      .number("global_load_bytes", c.global_load_bytes)
      .number("global_store_requests", c.global_store_requests)
      .number("global_store_sectors", c.global_store_sectors)
      .number("global_store_bytes", c.global_store_bytes)
      .number("shared_requests", c.shared_load_requests + c.shared_store_requests)
      .number("shared_wavefronts", c.shared_load_wavefronts + c.shared_store_wavefronts)
      .number("shared_load_requests", c.shared_load_requests)
      .number("shared_load_wavefronts", c.shared_load_wavefronts)
      .number("shared_load_conflicts", c.shared_load_conflicts)
      .number("shared_load_bytes", c.shared_load_bytes)
      .number("shared_store_requests", c.shared_store_requests)
      .number("shared_store_wavefronts", c.shared_store_wavefronts)
      .number("shared_store_conflicts", c.shared_store_conflicts)
      .number("shared_store_bytes", c.shared_store_bytes)
      .number("atomic_requests", c.atomic_requests)
      .number("atomic_sectors", c.atomic_sectors)
      .number("atomic_bytes", c.atomic_bytes)
      .number("shared_atomic_requests", c.shared_atomic_requests)
      .number("shared_atomic_wavefronts", c.shared_atomic_wavefronts)
      .number("shared_atomic_bytes", c.shared_atomic_bytes)
      .number("constant_requests", c.constant_requests)
      .number("constant_bytes", c.constant_bytes)
      .number("texture_requests", c.texture_requests)
      .number("local_requests", c.local_requests)
      .number("local_bytes", c.local_bytes)
      .number("bulk_copies", c.bulk_copies)
      .number("bulk_load_bytes", c.bulk_load_bytes)
      .number("bulk_store_bytes", c.bulk_store_bytes)
      .number("matrix_products", c.matrix_products)
      .number("matrix_operations", c.matrix_operations)
      .number("barriers", c.barriers)
      .number("basic_blocks", c.basic_blocks)
      .number("basic_block_lanes", c.basic_block_lanes)
      .number("branches", c.branches)
      .number("divergent_branches", c.divergent_branches)
      .number("constant_rounds", c.constant_rounds)
      .number("global_load_used_bytes", c.global_load_used_bytes)
      .number("global_store_used_bytes", c.global_store_used_bytes)
      .number("atomic_rounds", c.atomic_rounds)
      .number("shared_atomic_rounds", c.shared_atomic_rounds)
      .number("l1_load_hits", c.l1_load_hits)
      .number("l1_store_hits", c.l1_store_hits)
      .number("l1_evictions", c.l1_evictions)
      .number("l2_sectors", c.l2_sectors)
      .number("l2_hits", c.l2_hits)
      .number("l2_evictions", c.l2_evictions)
      .number("dram_read_bytes", c.dram_read_bytes)
      .number("dram_write_bytes", c.dram_write_bytes);
}

std::string mean_lanes(const Counters& c) {
  const std::uint64_t requests = c.requests();
  return requests == 0
             ? "0"
             : std::to_string(static_cast<double>(c.active_lanes) / static_cast<double>(requests));
}

/// Returns the floating-point operations by kind, as JSON fields.
Fields operations(const Arithmetic& a) {
  Fields out;
  out.number("total", a.operations()).number("additions", a.additions);
  out.number("multiplications", a.multiplications).number("divisions", a.divisions);
  out.number("f64", a.f64).number("functions", a.functions);
  return out;
}

std::string one_line(const Line& line) {
  Fields out;
  out.text("file", line.file).number("line", static_cast<std::uint64_t>(line.line));
  add_counters(out, line.counters);
  out.raw("operations", operations(line.arithmetic).whole());
  out.raw("active_lanes", mean_lanes(line.counters));
  out.raw("exact", line.exact ? "true" : "false");
  return out.whole();
}

/// Formats the quotient `of` / `by`; "null" if `by` is 0.
std::string ratio(std::uint64_t of, std::uint64_t by) {
  if (by == 0) return "null";
  return std::to_string(static_cast<double>(of) / static_cast<double>(by));
}

/// Formats the bytes of global memory at three levels: requested by threads, moved in whole
/// sectors, and compulsory for any cache size.
std::string levels(const Work& work) {
  constexpr std::uint64_t sector = 32;
  const Counters& c = work.totals;
  const std::uint64_t sectors = c.global_load_sectors + c.global_store_sectors + c.atomic_sectors;
  Fields out;
  out.number("global_asked", c.global_load_bytes + c.global_store_bytes + c.atomic_bytes)
      .number("global_moved", sector * sectors)
      .number("global_distinct", work.distinct_load_bytes + work.distinct_store_bytes)
      .number("global_distinct_loaded", work.distinct_load_bytes)
      .number("global_distinct_stored", work.distinct_store_bytes)
      .number("bulk", c.bulk_load_bytes + c.bulk_store_bytes)
      .number("shared", c.shared_load_bytes + c.shared_store_bytes + c.shared_atomic_bytes)
      .number("local", c.local_bytes)
      .number("constant", c.constant_bytes);
  return out.whole();
}

/// Formats the counters of the cache model; "null" if a launch was too large to replay.
std::string caches(const Work& work) {
  if (!work.caches_known) return "null";
  const Counters& c = work.totals;
  const auto percent = [](std::uint64_t of, std::uint64_t by) { return ratio(100 * of, by); };
  const std::uint64_t l1 = c.global_load_sectors + c.global_store_sectors + c.atomic_sectors;
  Fields out;
  out.number("l1_bytes", work.l1_bytes);
  out.raw("l1tex__t_sector_hit_rate.pct", percent(c.l1_load_hits + c.l1_store_hits, l1));
  out.raw("l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
          percent(c.l1_load_hits, c.global_load_sectors));
  out.raw("lts__t_sector_hit_rate.pct", percent(c.l2_hits, c.l2_sectors));
  out.number("dram_read_bytes", c.dram_read_bytes).number("dram_write_bytes", c.dram_write_bytes);
  out.number("dirty_bytes", work.dirty_bytes);
  return out.whole();
}

/// Formats the imbalance: basic blocks entered by the busiest block and warp over the mean; "null"
/// if unknown.
std::string balance(const Work& work) {
  const auto real = [](double value) { return value == 0 ? "null" : std::to_string(value); };
  Fields out;
  out.raw("block_longest_over_mean", real(work.block_imbalance));
  out.raw("warp_longest_over_mean", real(work.warp_imbalance));
  return out.whole();
}

/// Formats the causes of stalls, from which `rung explain` derives a bound on the run time.
std::string waits(const Waits& w) {
  Fields longest;
  longest.number("memory", w.longest.memory).number("cache", w.longest.cache);
  longest.number("shared", w.longest.shared).number("barriers", w.longest.barriers);
  longest.number("exchanges", w.longest.exchanges);
  Fields out;
  out.number("lines", w.lines).number("merged_load_wavefronts", w.merged_load_wavefronts);
  out.number("merged_requests", w.merged_requests).raw("longest", longest.whole());
  return out.whole();
}

std::string one_launch(const LaunchWork& launch) {
  Fields totals;
  add_counters(totals, launch.totals);
  const auto extent = [](const dialect::dim3& v) { return triple({v.x, v.y, v.z}); };
  Fields out;
  out.raw("grid", extent(launch.grid)).raw("block", extent(launch.block));
  out.number("shared_bytes", launch.shared_bytes);
  out.number("warps", launch.warps).number("divergent_warps", launch.divergent_warps);
  out.raw("active_lanes", mean_lanes(launch.totals)).raw("bytes", levels(launch));
  out.raw("operations", operations(launch.arithmetic).whole());
  out.raw("caches", caches(launch)).raw("balance", balance(launch));
  out.raw("totals", totals.whole());
  return out.whole();
}

std::string one_kernel(const Kernel& kernel) {
  const Counters& c = kernel.totals;
  Fields totals;
  add_counters(totals, c);
  Fields out;
  out.text("name", kernel.name);
  out.number("launches", kernel.launches + kernel.unrecorded_launches);
  out.number("recorded_launches", kernel.launches);
  out.number("blocks", kernel.blocks).number("threads", kernel.threads);
  out.number("block_threads", kernel.block_threads);
  out.number("shared_bytes", kernel.shared_bytes);
  out.number("warps", kernel.warps).number("divergent_warps", kernel.divergent_warps);
  out.raw("global_load_sectors_per_request", ratio(c.global_load_sectors, c.global_load_requests));
  out.raw("global_store_sectors_per_request",
          ratio(c.global_store_sectors, c.global_store_requests));
  out.raw("shared_wavefronts_per_request",
          ratio(c.shared_load_wavefronts + c.shared_store_wavefronts,
                c.shared_load_requests + c.shared_store_requests));
  constexpr std::uint64_t sector = 32;
  out.raw("global_load_efficiency",
          ratio(c.global_load_used_bytes, sector * c.global_load_sectors));
  out.raw("global_store_efficiency",
          ratio(c.global_store_used_bytes, sector * c.global_store_sectors));
  out.raw("atomic_rounds_per_request", ratio(c.atomic_rounds, c.atomic_requests));
  out.raw("shared_atomic_rounds_per_request",
          ratio(c.shared_atomic_rounds, c.shared_atomic_requests));
  out.raw("constant_rounds_per_request", ratio(c.constant_rounds, c.constant_requests));
  out.raw("caches", caches(kernel)).raw("balance", balance(kernel));
  out.raw("waits", waits(kernel.waits));
  out.raw("reuse", ratio(c.shared_load_bytes, c.global_load_bytes + c.bulk_load_bytes));
  out.raw("bytes", levels(kernel));
  // Null if there are no branches, or they are unknown.
  out.raw("branch_efficiency",
          kernel.totals.branches == 0 ? "null" : std::to_string(kernel.branch_efficiency()));
  out.raw("active_lanes", mean_lanes(kernel.totals));
  out.raw("thread_inst_executed_per_inst_executed", std::to_string(kernel.lanes_per_instruction()));
  // Null if the code could not be disassembled.
  Fields done = operations(kernel.arithmetic);
  done.number("integer", kernel.arithmetic.integer);
  done.raw("exact", kernel.arithmetic_exact ? "true" : "false");
  out.raw("operations", kernel.arithmetic_known ? done.whole() : "null");
  out.raw("totals", totals.whole());
  out.raw("lines", list(kernel.lines, one_line));
  out.raw("each_launch", list(kernel.each, one_launch));
  return out.whole();
}

std::string one_partly_recorded(const PartlyRecorded& kernel) {
  Fields out;
  out.text("kernel", kernel.kernel).number("launches", kernel.launches);
  out.number("recorded", kernel.recorded).number("first", kernel.first);
  return out.whole();
}

std::string coordinates(const uint3& v) {
  return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

}  // namespace

const char* to_string(Kind kind) {
  constexpr const char* names[] = {"race",      "out_of_bounds", "misaligned",    "use_after_free",
                                   "read_only", "leak",          "uninitialized", "barrier",
                                   "warp_sync", "deadlock",      "launch",        "host_access",
                                   "api_call",  "overlap",       "stream_order"};
  return names[static_cast<int>(kind)];
}

const char* to_string(Space space) {
  constexpr const char* names[] = {"shared", "global", "local", "constant"};
  return names[static_cast<int>(space)];
}

std::string to_json(const Report& report, bool fields_only) {
  Fields out;
  out.raw("findings", list(report.findings, one_finding));
  out.raw("kernels", list(report.kernels, one_kernel));
  if (!report.partly_recorded.empty()) {
    out.raw("partly_recorded", list(report.partly_recorded, one_partly_recorded));
  }
  return fields_only ? out.fields() : out.whole();
}

std::string to_text(const Finding& f) {
  const bool of_thread =
      f.kind != Kind::launch && f.kind != Kind::overlap && f.kind != Kind::stream_order;
  std::string text = to_string(f.kind);
  if (of_thread) text += std::string(" (") + to_string(f.space) + ")";
  text += ": " + f.message;
  if (f.line != 0) text += "\n  at " + printable(f.file) + ":" + std::to_string(f.line);
  if (!f.kernel.empty()) text += "\n  kernel " + printable(f.kernel);
  if (!f.kernel.empty() && of_thread) {
    text += ", block " + coordinates(f.block) + ", thread " + coordinates(f.thread);
  }
  if (f.other_line != 0) {
    const bool two_threads = f.kind == Kind::race || f.kind == Kind::barrier;
    const bool two_sided = two_threads || f.kind == Kind::warp_sync || f.kind == Kind::overlap ||
                           f.kind == Kind::stream_order;
    text += (two_sided ? "\n  and " : "\n  allocated at ") + printable(f.other_file) + ":" +
            std::to_string(f.other_line);
    const auto same = [](const uint3& a, const uint3& b) {
      return a.x == b.x && a.y == b.y && a.z == b.z;
    };
    // The racing thread is unknown if it is one of many readers.
    const bool known = !same(f.block, f.other_block) || !same(f.thread, f.other_thread);
    if (f.kind == Kind::race && !known) {
      const bool own_init = f.advice.starts_with("fence.mbarrier_init");
      const bool own_copy = f.advice.starts_with("wait for the copy");
      text += own_init                                     ? ", the same thread"
              : own_copy                                   ? ", its own copy"
              : f.advice.starts_with("wait for the store") ? ", its own store"
                                                           : ", other threads";
    }
    if (two_threads && known) {
      text += ", block " + coordinates(f.other_block) + ", thread " + coordinates(f.other_thread);
    }
  }
  if (f.times > 1) text += "\n  seen " + std::to_string(f.times) + " times";
  if (!f.advice.empty()) text += "\n  " + f.advice;
  return text;
}

std::string to_text(const PartlyRecorded& kernel) {
  std::string text = "kernel " + kernel.kernel + ": ";
  if (kernel.recorded != kernel.launches) {
    const auto later = kernel.recorded - kernel.first;
    text += std::to_string(kernel.recorded) + " of " + std::to_string(kernel.launches) +
            " launches were checked, the first " + std::to_string(kernel.first) + " and " +
            std::to_string(later) + (later == 1 ? " later one; " : " later ones; ") +
            std::to_string(kernel.launches - kernel.recorded) + " that repeated them ran unchecked";
    if (kernel.blocks != 0) text += "; of those that were checked ";
  }
  if (kernel.blocks != 0) {
    text += std::to_string(kernel.recorded_blocks) + " of " + std::to_string(kernel.blocks) +
            " blocks were checked; " + std::to_string(kernel.blocks - kernel.recorded_blocks) +
            " that repeated them at other addresses ran unchecked";
  }
  return text + " (--checks always checks all)";
}

}  // namespace rung::simt::record
