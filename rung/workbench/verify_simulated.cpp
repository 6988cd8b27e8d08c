// SPDX-License-Identifier: Apache-2.0
// Verification with the simulated GPU's checks.
#include "rung/workbench/verify_simulated.hpp"

#include <algorithm>

#include "rung/harness/guards.hpp"
#include "rung/workbench/recording.hpp"

namespace rung::workbench {

#if defined(RUNG_WATCHES)

Verdict verify_simulated(const std::function<Verdict()>& verify) {
  detail::receive_guards(simt::record::set_guards);  // before the first tensor is made
  Recording recording({.counters = false});
  Verdict verdict = verify();
  const simt::record::Report report = recording.end();
  if (report.findings.empty()) return verdict;
  if (verdict.kind == Verdict::Kind::failed) verdict.message += "; ";
  verdict.kind = Verdict::Kind::failed;
  // A race explains other findings: report it first.
  const auto race = std::find_if(report.findings.begin(), report.findings.end(),
                                 [](const auto& f) { return f.kind == simt::record::Kind::race; });
  verdict.message += to_text(race != report.findings.end() ? *race : report.findings.front());
  if (const std::size_t more = report.findings.size() - 1; more != 0) {
    verdict.message += "\n  and " + std::to_string(more) + " more";
  }
  return verdict;
}

#else

Verdict verify_simulated(const std::function<Verdict()>& verify) { return verify(); }

#endif

}  // namespace rung::workbench
