// The arithmetic headers, in the order in which they need one another.
#pragma once

#include "rawcoll/types.h"
#include "rawcoll/bits.h"
#include "rawcoll/convert.h"
#include "rawcoll/ops.h"
#include "rawcoll/cast.h"
