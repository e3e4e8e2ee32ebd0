/* NCCL's logger as plugins see it: one line a call to standard error, if its level is wanted. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

/* Levels up to this one are shown: 2 is a warning, 3 news. */
static atomic_int wanted = 2;

void weft_net_bench_log_level(int level) { atomic_store(&wanted, level); }

void weft_net_bench_log(int level, unsigned long subsystems, const char *file, int line,
                        const char *format, ...) {
  (void)subsystems;
  if (level > atomic_load(&wanted)) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "%s (%s:%d)\n", text, file ? file : "?", line);
}
