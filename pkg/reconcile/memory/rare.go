package memory

// Rare is a part of the memory that few upstreams need. It takes the space of a pointer until it is set.
type Rare[T any] struct{ part *T }

// isSet reports whether the part is set.
func (r Rare[T]) isSet() bool { return r.part != nil }

// Get returns the part; the zero value if it is not set.
func (r Rare[T]) Get() (part T) {
	if r.part != nil {
		part = *r.part
	}
	return part
}

// Edit sets the part if it is not set, and returns it to be changed.
func (r *Rare[T]) Edit() *T {
	if r.part == nil {
		r.part = new(T)
	}
	return r.part
}

// Set changes the part. If it is not set and not needed, it stays so: a part that is not set is that of zero values.
func (r *Rare[T]) Set(needed bool, change func(part *T)) {
	if needed || r.isSet() {
		change(r.Edit())
	}
}

// Reset drops the part.
func (r *Rare[T]) Reset() { r.part = nil }

// clone returns a copy that shares nothing with r, except for what T points to.
func (r Rare[T]) clone() Rare[T] {
	if r.part == nil {
		return r
	}
	part := *r.part
	return Rare[T]{&part}
}
