# Embeds devices/*.json as texts in the layer target (device_files() of target/device_file.h). The
# program knows these files wherever the program lies.
file(GLOB device_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/devices/*.json)
list(SORT device_files)
set(device_rows)
foreach(file IN LISTS device_files)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND device_rows "    {\"${name}\", R\"json(${text})json\"},\n")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${device_files})
configure_file(${PROJECT_SOURCE_DIR}/cmake/device_files.cpp.in
               ${PROJECT_BINARY_DIR}/device_files.cpp @ONLY)
target_sources(pruner_target PRIVATE ${PROJECT_BINARY_DIR}/device_files.cpp)
