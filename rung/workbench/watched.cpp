// SPDX-License-Identifier: Apache-2.0
// Judging under the simulated GPU's checks.
#include "rung/workbench/watched.hpp"

#include <algorithm>

// Under the address sanitizer kernels have no hooks (cmake/simt.cmake): the checks would see half
// of what they do.
#if defined(RUNG_WITH_SIMULATOR) && !defined(__SANITIZE_ADDRESS__)
#define RUNG_WATCHES 1
#include "rung/simt/record.hpp"
#endif

namespace rung::workbench {

#if defined(RUNG_WATCHES)

namespace {

/// Ends the session whatever happens.
class Session {
 public:
  Session() { simt::record::begin({.counters = false}); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (!ended_) (void)simt::record::end();
  }
  simt::record::Report end() {
    ended_ = true;
    return simt::record::end();
  }

 private:
  bool ended_ = false;
};

}  // namespace

Verdict watched(const std::function<Verdict()>& judge) {
  Session session;
  Verdict verdict = judge();
  const simt::record::Report report = session.end();
  if (report.findings.empty()) return verdict;
  if (verdict.kind == Verdict::Kind::failed) verdict.message += "; ";
  verdict.kind = Verdict::Kind::failed;
  // A race explains the others.
  const auto race = std::find_if(report.findings.begin(), report.findings.end(),
                                 [](const auto& f) { return f.kind == simt::record::Kind::race; });
  verdict.message += to_text(race != report.findings.end() ? *race : report.findings.front());
  if (const std::size_t more = report.findings.size() - 1; more != 0) {
    verdict.message += "\n  and " + std::to_string(more) + " more";
  }
  return verdict;
}

#else

Verdict watched(const std::function<Verdict()>& judge) { return judge(); }

#endif

}  // namespace rung::workbench
