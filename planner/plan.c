#include "planner/plan.h"

#include <stdlib.h>

void nd_plan_list_free(nd_plan_list *list)
{
    if (list != NULL) {
        free(list->plans);
        list->plans = NULL;
        list->count = 0;
    }
}
