# run_command(ARGS... [OUTPUT NAME]): runs a command and stops the script with its output when it
# fails. Its standard output goes to the variable NAME.
function(run_command)
  cmake_parse_arguments(ARG "" "OUTPUT" "" ${ARGN})
  execute_process(COMMAND ${ARG_UNPARSED_ARGUMENTS}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE error)
  if(NOT result EQUAL 0)
    list(JOIN ARG_UNPARSED_ARGUMENTS " " command)
    message(FATAL_ERROR "'${command}' ended with ${result}:\n${output}\n${error}")
  endif()
  if(ARG_OUTPUT)
    set(${ARG_OUTPUT} "${output}" PARENT_SCOPE)
  endif()
endfunction()
