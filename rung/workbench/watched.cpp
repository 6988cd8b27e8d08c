// SPDX-License-Identifier: Apache-2.0
// Judging under the simulated GPU's checks.
#include "rung/workbench/watched.hpp"

#if defined(RUNG_WITH_SIMULATOR)
#include "rung/simt/record.hpp"
#endif

namespace rung::workbench {

#if defined(RUNG_WITH_SIMULATOR)

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
  verdict.message += to_text(report.findings.front());
  if (const std::size_t more = report.findings.size() - 1; more != 0) {
    verdict.message += "\n  and " + std::to_string(more) + " more";
  }
  return verdict;
}

#else

Verdict watched(const std::function<Verdict()>& judge) { return judge(); }

#endif

}  // namespace rung::workbench
