// SPDX-License-Identifier: Apache-2.0
// Table of nvcc's options. Options that affect only GPU code are ignored.
#include "rung/emulate/nvcc_options.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "rung/emulate/nvcc_words.hpp"

namespace rung::emulate {
namespace {

using Effect = NvccEffect;

constexpr NvccOption nvcc_options[] = {
    {"-I --include-path", true, Effect::include},
    {"-isystem --system-include", true, Effect::system_include},
    {"-include --pre-include", true, Effect::pre_include},
    {"-D --define-macro", true, Effect::define},
    {"-U --undefine-macro", true, Effect::undefine},
    {"-l --library", true, Effect::library},
    {"-L --library-path", true, Effect::library_folder},
    {"-o --output-file", true, Effect::output},
    {"-odir --output-directory", true, Effect::output_folder},
    {"-c --compile -dw --device-w", false, Effect::object},
    {"-dc --device-c", false, Effect::relocatable_object},
    {"-rdc --relocatable-device-code", true, Effect::relocatable},
    {"-dlink --device-link", false, Effect::device_link},
    {"-lib --lib", false, Effect::archive},
    {"-E --preprocess", false, Effect::preprocess},
    {"-M --generate-dependencies -MM --generate-nonsystem-dependencies", false,
     Effect::dependencies},
    {"-MD --generate-dependencies-with-compile -MMD "
     "--generate-nonsystem-dependencies-with-compile",
     false, Effect::write_dependencies},
    {"-MP --generate-dependency-targets", false, Effect::phony_dependencies},
    {"-MF --dependency-output", true, Effect::dependencies_file},
    {"-MT --dependency-target-name", true, Effect::dependencies_target},
    {"-shared --shared", false, Effect::shared},
    {"-std --std", true, Effect::standard},
    {"-default-stream --default-stream", true, Effect::default_stream},
    {"-Xcompiler --compiler-options", true, Effect::host_options},
    {"-Xlinker --linker-options", true, Effect::linker_options},
    {"-x --x", true, Effect::language},
    {"-arch --gpu-architecture -gencode --generate-code -code --gpu-code", true,
     Effect::architecture},
    {"-optf --options-file", true, Effect::options_file},
    {"-dryrun --dryrun", false, Effect::dry_run},
    {"-v --verbose", false, Effect::verbose},
    {"-keep --keep -save-temps --save-temps", false, Effect::keep},
    {"-keep-dir --keep-dir", true, Effect::keep_folder},
    {"-V --version -version", false, Effect::version},
    {"-h --help -help", false, Effect::help},
    {"-w --disable-warnings", false, Effect::warnings_off},
    {"-forward-unknown-to-host-compiler --forward-unknown-to-host-compiler "
     "-forward-unknown-to-host-linker --forward-unknown-to-host-linker "
     "-forward-unknown-opts --forward-unknown-opts",
     false, Effect::forward_unknown},
    {"-ptx --ptx -cubin --cubin -fatbin --fatbin -optix-ir --optix-ir -ltoir --ltoir", false,
     Effect::no_chip_code},
    {"-cuda --cuda -clean --clean-targets -run --run -r --relocatable-link -fdevice-syntax-only "
     "--fdevice-syntax-only",
     false, Effect::run},
    // Ignored: options for GPU code or NVIDIA's compilers, and for files that rung does not
    // produce.
    {"-Xptxas --ptxas-options -Xnvlink --nvlink-options "
     "-Xcudafe --cudafe-options -Xarchive --archive-options -ccbin --compiler-bindir "
     "-arbin --archiver-binary -maxrregcount --maxrregcount -t --threads -split-compile "
     "--split-compile -split-compile-extended --split-compile-extended -ftz --ftz "
     "-prec-div --prec-div -prec-sqrt --prec-sqrt -fmad --fmad -cudart --cudart "
     "-cudadevrt --cudadevrt -diag-suppress "
     "--diag-suppress -diag-error --diag-error -diag-warn --diag-warn -m --machine "
     "-target-dir --target-directory -O --optimize -Werror --Werror -brief-diag "
     "--brief-diagnostics -ldir --libdevice-directory -e --entries -run-args --run-args "
     "-idp --input-drive-prefix -ddp --dependency-drive-prefix -dp --drive-prefix -time "
     "--time -opt-info --optimization-info -dopt --dopt -Ofc --Ofast-compile -hls "
     "--host-linker-script -aug-hls --augment-host-linker-script -jtd --jump-table-density "
     "-fdevice-time-trace --fdevice-time-trace -compress-mode --compress-mode "
     "-frandom-seed --frandom-seed -ftemplate-backtrace-limit --ftemplate-backtrace-limit "
     "-ftemplate-depth --ftemplate-depth -qpp-config --qpp-config -sanitize --sanitize "
     "-device-stack-protector --device-stack-protector",
     true, Effect::nothing},
    {"-g --debug -G --device-debug -lineinfo --generate-line-info -m64 --m64 "
     "-use_fast_math --use_fast_math -extended-lambda --extended-lambda "
     "-expt-extended-lambda --expt-extended-lambda -expt-relaxed-constexpr "
     "--expt-relaxed-constexpr -dlto --dlink-time-opt -lto --lto -restrict --restrict -pg "
     "--profile -src-in-ptx --source-in-ptx -allow-unsupported-compiler "
     "--allow-unsupported-compiler -res-usage --resource-usage -rdynamic -ewp "
     "--extensible-whole-program -nodlink --no-device-link -noprof --dont-use-profile "
     "-no-align-double --no-align-double -extra-device-vectorization "
     "--extra-device-vectorization -Wno-deprecated-gpu-targets "
     "--Wno-deprecated-gpu-targets -Wno-deprecated-declarations "
     "--Wno-deprecated-declarations -Wreorder --Wreorder -Wdefault-stream-launch "
     "--Wdefault-stream-launch -Wmissing-launch-bounds --Wmissing-launch-bounds "
     "-Wext-lambda-captures-this --Wext-lambda-captures-this -err-no "
     "--display-error-number -no-err-no --no-display-error-number -keep-device-functions "
     "--keep-device-functions -no-compress --no-compress -gen-opt-lto --gen-opt-lto "
     "-objtemp --objdir-as-tempdir -use-local-env --use-local-env -noeh --no-exceptions "
     "-nohdinitlist --no-host-device-initializer-list -nohdmoveforward "
     "--no-host-device-move-forward -static-global-template-stub "
     "--static-global-template-stub -device-entity-has-hidden-visibility "
     "--device-entity-has-hidden-visibility -reloc-ptx --relocatable-ptx -astoolspatch "
     "--compile-as-tools-patch -force-cl-env-setup --force-cl-env-setup -jobserver "
     "--jobserver",
     false, Effect::nothing},
};

/// Options whose value may follow without a space: -Iinclude, -DN=1, -t4.
constexpr std::string_view glued[] = {"-I", "-D", "-U", "-l", "-L", "-O", "-t", "-m", "-j"};

bool has_name(const NvccOption& option, std::string_view name) {
  std::string_view rest = option.names;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == name) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

}  // namespace

const NvccOption* find_nvcc_option(std::string_view name) {
  for (const NvccOption& one : nvcc_options) {
    if (has_name(one, name)) return &one;
  }
  return nullptr;
}

const NvccOption* find_glued_nvcc_option(std::string_view word) {
  for (const std::string_view letter : glued) {
    if (!word.starts_with(letter) || word.size() <= letter.size()) continue;
    // Matches -m64 and -t4, but not -march.
    const bool number = std::islower(static_cast<unsigned char>(letter[1])) != 0 && letter != "-l";
    const char first = word[2] == '=' ? '0' : word[2];
    if (!number || std::isdigit(static_cast<unsigned char>(first)) != 0) {
      return find_nvcc_option(letter);
    }
  }
  return nullptr;
}

NvccOptionKind nvcc_option_kind(std::string_view name) {
  const NvccOption* const option = find_nvcc_option(name);
  if (option == nullptr) return {};
  const bool has_effect =
      option->effect != Effect::nothing && option->effect != Effect::verbose &&
      option->effect != Effect::forward_unknown && option->effect != Effect::architecture &&
      option->effect != Effect::default_stream && option->effect != Effect::output_folder &&
      option->effect != Effect::relocatable;
  return {true, option->takes_value, has_effect};
}

}  // namespace rung::emulate
