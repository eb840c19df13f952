/* Work after fork. The threads of OpenMP do not exist in a forked child, but its runtime (libgomp) still counts on them
 * and waits for ever in the first parallel region. A child can only work with the thread that it has. So the contexts
 * that it inherits, and those that it creates, get one thread each, if the parent had several threads at the fork. */
#include <pthread.h>

#include "base/system.h"
#include "core/internal.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sp_context *first;  /* all living contexts */
static bool several, alone; /* the parent has several threads at the fork; this process is the child of such a one */

static void before_fork(void)
{
    pthread_mutex_lock(&guard);
    several = system_has_threads();
}

static void in_parent(void) { pthread_mutex_unlock(&guard); }

static void in_child(void)
{
    if (several) alone = true;
    for (sp_context *context = first; alone && context; context = context->next) context->threads = 1;
    pthread_mutex_unlock(&guard);
}

static void watch_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

void sp_fork_enter(sp_context *context)
{
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&guard);
    context->next = first;
    context->previous = NULL;
    if (first) first->previous = context;
    first = context;
    if (alone) context->threads = 1;
    pthread_mutex_unlock(&guard);
}

void sp_fork_leave(sp_context *context)
{
    pthread_mutex_lock(&guard);
    if (context->previous) context->previous->next = context->next;
    else first = context->next;
    if (context->next) context->next->previous = context->previous;
    pthread_mutex_unlock(&guard);
}
