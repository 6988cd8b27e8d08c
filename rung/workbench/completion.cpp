// SPDX-License-Identifier: Apache-2.0
// rung completion: prints a shell's completion script. The scripts pass the words to this program,
// which knows its operators and rungs.
#include <fmt/format.h>

#include <memory>

#include "rung/workbench/command.hpp"

namespace rung::workbench {
namespace {

constexpr const char* bash_script = R"(# bash completion of rung: source <(rung completion bash)
_rung_complete() {
  local line current="${COMP_WORDS[COMP_CWORD]}" quote=''
  local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  [[ $current == '=' ]] && current=''
  # A word that begins with a quote is completed inside it; elsewhere blanks need a backslash.
  if [[ $current == [\'\"]* ]]; then
    quote="${current:0:1}" current="${current:1}"
  else
    current="${current//\\ / }"
  fi
  [[ ${COMP_WORDS[COMP_CWORD]} == '=' ]] || words[COMP_CWORD-1]="$current"
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == ':files' ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
    else
      [[ -z $quote && $line == *' '* ]] && printf -v line '%q' "$line"
      COMPREPLY+=("$line")
    fi
  done < <("${COMP_WORDS[0]}" complete-words -- "${words[@]}" 2>/dev/null)
}
complete -F _rung_complete rung
)";

constexpr const char* zsh_script = R"(#compdef rung
# zsh completion of rung: source <(rung completion zsh), or a file _rung in a folder of fpath
_rung() {
  local line with_files
  local -a found
  for line in "${(@f)$("${words[1]}" complete-words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == ':files' ]]; then
      with_files=yes
    elif [[ -n $line ]]; then
      found+=("$line")
    fi
  done
  if (( $#found )); then compadd -- "${found[@]}"; fi
  if [[ -n $with_files ]]; then _files; fi
}
if [[ $funcstack[1] == _rung ]]; then _rung "$@"; else compdef _rung rung; fi
)";

constexpr const char* fish_script = R"(# fish completion of rung: rung completion fish | source
function __rung_complete
    set -l current (commandline -ct)
    test (count $current) -eq 0; and set current ''
    set -l words (commandline -opc)
    for line in ($words[1] complete-words -- $words[2..-1] $current 2>/dev/null)
        if test "$line" = ':files'
            __fish_complete_path $current
        else
            echo $line
        end
    end
end
complete -c rung -f -a '(__rung_complete)'
)";

int run(const std::string& shell) {
  fmt::print("{}", shell == "bash" ? bash_script : shell == "zsh" ? zsh_script : fish_script);
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "the shell").one_of({"bash", "zsh", "fish"}).required();
  app.purpose(
      "Prints a script that makes the shell complete commands, options, operators, rungs and file "
      "names of rung's command lines when Tab is pressed.");
  app.example("source <(rung completion bash)", "in this shell; for every shell, in ~/.bashrc");
  app.example("source <(rung completion zsh)", "in ~/.zshrc, after compinit");
  app.example("rung completion fish | source", "in ~/.config/fish/config.fish");
  app.exit_codes({{exit_good, "good"}, {exit_usage, "no such shell is known"}});
  return [shell] { return run(*shell); };
}

const Command self{{.name = "completion",
                    .order = 210,
                    .summary = "a script that completes rung's command lines in a shell",
                    .setup = setup}};

// Called by the scripts, with the words of the command line after "--".
CommandSpec::Action setup_words(Parser) {
  return [] {
    for (const std::string& word : complete(words_behind())) fmt::print("{}\n", word);
    return static_cast<int>(exit_good);
  };
}

const Command words{{.name = "complete-words", .order = 220, .summary = "", .setup = setup_words}};

}  // namespace
}  // namespace rung::workbench
