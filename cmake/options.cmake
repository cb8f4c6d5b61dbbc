# Sets the language, warnings, sanitizers, linker and compiler cache of all that is built.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")

add_library(pruner_options INTERFACE)
target_compile_options(pruner_options INTERFACE -Wall -Wextra -Werror=return-type)
# g++ 12 warns wrongly about the insides of std::string and std::optional.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(pruner_options INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                                                  -Wno-stringop-overread -Wno-maybe-uninitialized)
endif()
# clang warns about std::stable_sort of libstdc++ 12, which calls a deprecated function for memory.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(pruner_options INTERFACE -Wno-deprecated-declarations)
endif()
# A unity build includes .cpp files. g++ warns about each type of such a file that no header
# declares.
if(PRUNER_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(pruner_options INTERFACE -Wno-subobject-linkage)
endif()
if("$ENV{CI}" STREQUAL "true")
  target_compile_options(pruner_options INTERFACE -Werror)
endif()
if(PRUNER_SANITIZE)
  # The sanitizer `function` reads bytes before each called function. Machine code that was just
  # made lacks these bytes.
  target_compile_options(pruner_options INTERFACE -fsanitize=${PRUNER_SANITIZE} -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer -fno-sanitize=vptr -g1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(pruner_options INTERFACE -fno-sanitize=function)
  endif()
  target_link_options(pruner_options INTERFACE -fsanitize=${PRUNER_SANITIZE})
endif()

# Hardens the program's C++. Modules carry the C files, which have to run with any C library.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT PRUNER_SANITIZE)
  target_compile_options(
    pruner_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
                             -fstack-protector-strong -fstack-clash-protection>)
  target_link_options(pruner_options INTERFACE -Wl,-z,relro,-z,now)
endif()

if(PRUNER_STATIC)
  target_compile_options(pruner_options INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(pruner_options INTERFACE -static-libstdc++ -static-libgcc -Wl,--gc-sections
                                               -Wl,--exclude-libs,ALL -s)
endif()

find_program(PRUNER_MOLD ld.mold mold)
find_program(PRUNER_LD_LLD ld.lld)
if(PRUNER_MOLD AND NOT CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12.1)
  target_link_options(pruner_options INTERFACE -fuse-ld=mold)
elseif(PRUNER_LD_LLD)
  target_link_options(pruner_options INTERFACE -fuse-ld=lld)
endif()

# ccache also caches precompiled headers if it may overlook macros that the headers do not read.
find_program(PRUNER_CCACHE ccache)
if(PRUNER_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
                                  CCACHE_SLOPPINESS=pch_defines,time_macros ${PRUNER_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${PRUNER_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(PRUNER_PCH_OPTIONS "SHELL:-Xclang -fno-pch-timestamp")
  else()
    set(PRUNER_PCH_OPTIONS -fpch-preprocess)
  endif()
endif()
