// Elements at any address.
#pragma once

namespace rawcoll {

// Alignment 1, because callers may pass odd addresses; may_alias, because memory holds whatever
// type the caller says. Both cost nothing on processors with unaligned vector loads.
template <class T>
struct Packed {
    T value;
} __attribute__((packed, may_alias));

template <class T>
static inline const Packed<T>* elements(const void* address) {
    return static_cast<const Packed<T>*>(address);
}

template <class T>
static inline Packed<T>* elements(void* address) {
    return static_cast<Packed<T>*>(address);
}

}  // namespace rawcoll
