package kept

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// decodeObject reads a JSON object as API machinery does: integers are int64 where they fit, and a name that occurs
// twice has its last value. It takes two thirds of the time of its decoder, and half of its allocations: names and
// short texts, which repeat from object to object, are shared. That is several per cent of the CPU time of the process,
// which reads more than anything else.
func decodeObject(data []byte) (map[string]any, error) {
	r, done := newReader(data)
	defer done()
	if kind := r.PeekKind(); kind != '{' {
		if _, err := r.ReadValue(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("want an object, not %s", kind)
	}
	object, err := r.object()
	if err != nil {
		return nil, err
	}
	return object, r.end()
}

// decodeHead reads what a cache needs of an object. Raw values are parts of data.
func decodeHead(data []byte) (h head, err error) {
	r, done := newReader(data)
	defer done()
	err = r.head(&h)
	if err == nil {
		err = r.end()
	}
	m := &h.Metadata
	if err == nil && m.Name == "" && m.annotations != nil {
		err = json.Unmarshal(m.annotations, &m.Annotations)
	}
	if err == nil && m.DeletionTimestamp != "" && m.finalizers != nil {
		err = json.Unmarshal(m.finalizers, &m.Finalizers)
	}
	return h, err
}

// head reads what a cache needs of an object.
func (r *reader) head(h *head) error {
	return r.fields(func(name string) (err error) {
		switch name {
		case "apiVersion":
			h.APIVersion, err = r.text()
		case "kind":
			h.Kind, err = r.text()
		case "metadata":
			err = r.fields(func(name string) error { return r.metadata(name, &h.Metadata) })
		default:
			err = r.SkipValue()
		}
		return err
	})
}

// head is what a cache needs of an object.
type head struct {
	APIVersion, Kind string
	Metadata         headMetadata
}

type headMetadata struct {
	Name, Namespace, ResourceVersion, DeletionTimestamp string
	UID                                                 types.UID
	// Annotations are kept of an object without a name, such as a bookmark.
	Annotations      map[string]string
	Finalizers       []string // of an object that is being deleted
	ManagedFields    json.RawMessage
	managedFieldsEnd int // of the JSON up to there

	annotations, finalizers json.RawMessage
}

// metadata reads one field of metadata.
func (r *reader) metadata(name string, m *headMetadata) (err error) {
	switch name {
	case "name":
		m.Name, err = r.text()
	case "namespace":
		m.Namespace, err = r.text()
	case "uid":
		var uid string
		uid, err = r.text()
		m.UID = types.UID(uid)
	case "resourceVersion":
		m.ResourceVersion, err = r.text()
	case "deletionTimestamp":
		m.DeletionTimestamp, err = r.text()
	case "managedFields":
		m.ManagedFields, err = r.raw()
		m.managedFieldsEnd = int(r.InputOffset())
	case "annotations":
		m.annotations, err = r.raw()
	case "finalizers":
		m.finalizers, err = r.raw()
	default:
		err = r.SkipValue()
	}
	return err
}

// reader reads JSON.
type reader struct {
	jsontext.Decoder
	data  []byte
	seed  maphash.Seed
	short [256]string // texts that were read, each at the place that its hash gives
	open  []field     // of the objects that are being read, the innermost last
}

// field is one of an object that is being read.
type field struct {
	name  string
	value any
}

// maxOpen bounds the fields of which the memory is kept: 32 bytes each.
const maxOpen = 4096

// maxShort is the length of the longest text that is shared, in bytes.
const maxShort = 40

var readers = sync.Pool{New: func() any { return &reader{seed: maphash.MakeSeed()} }}

func newReader(data []byte) (r *reader, done func()) {
	r, _ = readers.Get().(*reader)
	r.data = data
	r.Reset(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return r, func() {
		r.data = nil
		if cap(r.open) > maxOpen {
			r.open = nil
		}
		r.Reset(io.MultiReader()) // so that the pool holds no data
		readers.Put(r)
	}
}

// end is an error if anything follows what was read.
func (r *reader) end() error {
	switch _, err := r.ReadToken(); {
	case err == nil:
		return errors.New("more follows the object")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// fields calls read for each field of an object, which has to read the value. null has none.
func (r *reader) fields(read func(name string) error) error {
	switch t, err := r.ReadToken(); {
	case err != nil:
		return err
	case t.Kind() == 'n':
		return nil
	case t.Kind() != '{':
		return fmt.Errorf("want an object, not %s", t.Kind())
	}
	for r.PeekKind() == '"' {
		name, err := r.text()
		if err != nil {
			return err
		}
		if err := read(name); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

// object makes the map when all of its fields are known: a map that grows is allocated and filled twice over.
func (r *reader) object() (map[string]any, error) {
	start := len(r.open)
	err := r.fields(func(name string) error {
		value, err := r.value()
		r.open = append(r.open, field{name, value})
		return err
	})
	object := make(map[string]any, len(r.open)-start)
	for _, f := range r.open[start:] {
		object[f.name] = f.value
	}
	clear(r.open[start:])
	r.open = r.open[:start]
	return object, err
}

func (r *reader) list() ([]any, error) {
	if _, err := r.ReadToken(); err != nil {
		return nil, err
	}
	list := []any{}
	for r.PeekKind() != ']' {
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := r.ReadToken()
	return list, err
}

func (r *reader) value() (any, error) {
	switch r.PeekKind() {
	case '{':
		return r.object()
	case '[':
		return r.list()
	case '"':
		return r.text()
	case '0':
		return r.number()
	}
	t, err := r.ReadToken()
	switch {
	case err != nil:
		return nil, err
	case t.Kind() == 'n':
		return nil, nil //nolint:nilnil // that is what null is
	}
	return t.Bool(), nil
}

func (r *reader) number() (any, error) {
	raw, err := r.ReadValue()
	if err != nil {
		return nil, err
	}
	text := string(raw)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	return strconv.ParseFloat(text, 64)
}

// raw is the text of a value.
func (r *reader) raw() (json.RawMessage, error) {
	value, err := r.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(r.InputOffset())
	return json.RawMessage(r.data[end-len(value) : end]), nil
}

// text reads a text; null is "".
func (r *reader) text() (string, error) {
	raw, err := r.ReadValue()
	switch {
	case err != nil:
		return "", err
	case raw.Kind() == 'n':
		return "", nil
	case raw.Kind() != '"':
		return "", fmt.Errorf("want a text, not %.100s", raw)
	case bytes.IndexByte(raw, '\\') >= 0 || !utf8.Valid(raw):
		text, _ := jsontext.AppendUnquote(nil, raw) // an error says that there is U+FFFD now for what is not Unicode
		return string(text), nil
	}
	within := raw[1 : len(raw)-1]
	if len(within) > maxShort {
		return string(within), nil
	}
	known := &r.short[maphash.Bytes(r.seed, within)%uint64(len(r.short))]
	if *known != string(within) {
		*known = string(within)
	}
	return *known, nil
}

// framer cuts the stream of a watch into events, several times as fast as API machinery's.
type framer struct{ runtime.Framer }

// NewFrameReader returns a reader of which each Read returns an event, or io.ErrShortBuffer with a part of it.
func (framer) NewFrameReader(stream io.ReadCloser) io.ReadCloser {
	return &frames{Closer: stream, values: jsontext.NewDecoder(stream, jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))}
}

type frames struct {
	io.Closer
	values *jsontext.Decoder
	rest   []byte // of the last event
}

// Read reads the next event, or the rest of the last one.
func (f *frames) Read(into []byte) (int, error) {
	if len(f.rest) == 0 {
		value, err := f.values.ReadValue()
		if err != nil {
			return 0, plainError(err)
		}
		f.rest = value
	}
	n := copy(into, f.rest)
	f.rest = f.rest[n:]
	if len(f.rest) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// plainError is an error as encoding/json has it, which watches compare with those of io and net.
func plainError(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return io.ErrUnexpectedEOF
		}
		if cause := errors.Unwrap(syntax.Err); cause != nil { // the stream's, with "read error" around it
			return cause
		}
		return err
	}
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}
