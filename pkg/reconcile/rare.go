package reconcile

// rare is a part of the memory that few upstreams need. It takes the space of a pointer until it is set.
type rare[T any] struct{ part *T }

func (r rare[T]) isSet() bool { return r.part != nil }

// get returns the part; the zero value if it is not set.
func (r rare[T]) get() (part T) {
	if r.part != nil {
		part = *r.part
	}
	return part
}

// edit sets the part if it is not set, and returns it to be changed.
func (r *rare[T]) edit() *T {
	if r.part == nil {
		r.part = new(T)
	}
	return r.part
}

// set changes the part. If it is not set and not needed, it stays so: a part that is not set is that of zero values.
func (r *rare[T]) set(needed bool, change func(part *T)) {
	if needed || r.isSet() {
		change(r.edit())
	}
}

func (r *rare[T]) reset() { r.part = nil }

// clone returns a copy that shares nothing with r, except for what T points to.
func (r rare[T]) clone() rare[T] {
	if r.part == nil {
		return r
	}
	part := *r.part
	return rare[T]{&part}
}
