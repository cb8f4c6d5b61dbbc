#include "codegen/c/names.h"

#include <algorithm>
#include <cctype>

namespace pruner {

// Keywords and types of C, C++ and OpenCL C, and functions that the printed code calls.
static constexpr std::string_view kReserved[] = {"abs",           "asm",
                                                 "auto",          "barrier",
                                                 "bool",          "break",
                                                 "case",          "catch",
                                                 "ceil",          "char",
                                                 "class",         "const",
                                                 "constant",      "continue",
                                                 "cos",           "default",
                                                 "delete",        "do",
                                                 "double",        "else",
                                                 "enum",          "erf",
                                                 "exp",           "explicit",
                                                 "export",        "extern",
                                                 "fabs",          "false",
                                                 "float",         "floor",
                                                 "for",           "friend",
                                                 "global",        "goto",
                                                 "half",          "if",
                                                 "image",         "inline",
                                                 "int",           "kernel",
                                                 "local",         "log",
                                                 "long",          "max",
                                                 "min",           "mutable",
                                                 "namespace",     "new",
                                                 "operator",      "pipe",
                                                 "pow",           "private",
                                                 "protected",     "public",
                                                 "quad",          "register",
                                                 "restrict",      "return",
                                                 "rint",          "rsqrt",
                                                 "sampler_t",     "short",
                                                 "signed",        "sin",
                                                 "sizeof",        "sqrt",
                                                 "static",        "struct",
                                                 "switch",        "tanh",
                                                 "template",      "this",
                                                 "throw",         "true",
                                                 "try",           "typedef",
                                                 "typename",      "uchar",
                                                 "uint",          "ulong",
                                                 "union",         "unsigned",
                                                 "ushort",        "using",
                                                 "virtual",       "void",
                                                 "volatile",      "while",
                                                 "workspace",     "floor_div",
                                                 "floor_mod",     "max_of",
                                                 "min_of",        "round_half",
                                                 "sigmoid",       "event_t",
                                                 "complex",       "imaginary",
                                                 "half_to_float", "float_to_half",
                                                 "step",          "dot",
                                                 "cross",         "length",
                                                 "select",        "clamp",
                                                 "mix",           "isnan",
                                                 "isinf",         "sign",
                                                 "all",           "any",
                                                 "shuffle",       "vec_step",
                                                 "prefetch",      "as_int",
                                                 "as_float",      "bf16_to_float",
                                                 "float_to_bf",   "round_bf",
                                                 "to_tf",         "shared_address",
                                                 "commit_copies", "async_copy_",
                                                 "load_matrix_x", "wait_for_copies_"};

std::string Names::add(std::string_view name) {
  std::string base;
  for (const char c : name) {
    base += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  const bool word = !base.empty() && base[0] != '_' && !std::isdigit(base[0]);
  if (!word) base = "x" + base;
  std::string result = base;
  // "float4" is a type, too: a word and its number end in an underscore.
  const size_t letters = base.find_last_not_of("0123456789") + 1;
  const std::string_view stem = std::string_view(base).substr(0, letters);
  if (std::find(std::begin(kReserved), std::end(kReserved), stem) != std::end(kReserved)) {
    result = base + "_";
  }
  for (int i = 1; !taken_.insert(result).second; ++i) result = base + "_" + std::to_string(i);
  return result;
}

}  // namespace pruner
