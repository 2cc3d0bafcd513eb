package kept

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Texts compresses the JSON of cached objects. Objects of one kind are alike, so that each is compressed by means of
// another one of its kind: what is left of it is little more than what only it has. A new object is often read, and
// replaced by what was written about it, within a second: so it is compressed a while later, together with others.
type Texts struct {
	// plain is the empty dictionary: with it, each object is compressed by itself.
	plain *dictionary

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*kindTexts

	freshMu sync.Mutex
	// fresh are the texts that are not compressed yet, with bytes in all. Those that no cache has any more are gone once
	// they are garbage collected.
	fresh []freshText
	bytes int
	timer *time.Timer // nil before the first one
}

type freshText struct {
	text weak.Pointer[text]
	kind schema.GroupVersionKind
}

// NewTexts returns an empty store of texts.
func NewTexts() *Texts {
	return &Texts{plain: newDictionary(nil), kinds: map[schema.GroupVersionKind]*kindTexts{}}
}

// kindTexts is what is known of the texts of a kind. Now and then, a text is tried as the dictionary, and stays it if
// the next ones become smaller than those before it: anybody who may create an object could otherwise make all others
// of its kind large.
type kindTexts struct {
	compressed int // how often an object was
	nextTrial  int // of them
	dictionary *dictionary
	// before is the dictionary before the one that is tried; nil while none is.
	before *dictionary
	// size is the sum of the sizes of the last texts, relative to their JSON, and of is of how many; sizeBefore is what
	// size was at the last end of a period.
	size, sizeBefore float64
	of               int
}

// text is the JSON of an object; nil if it is not kept.
type text struct{ atomic.Pointer[stored] }

// stored is the JSON of an object, compressed by a dictionary; nil: as it is.
type stored struct {
	dictionary *dictionary
	bytes      []byte
}

// dictionary is the JSON of an object by which others are compressed. Encoders and decoders take hundreds of kilobytes,
// so they exist while they are used.
type dictionary struct {
	json     []byte
	encoders sync.Pool // of *encoder
	decoders sync.Pool // of *decoder
}

// encoder compresses texts, one at a time, into its buffer.
type encoder struct {
	*zstd.Encoder
	buffer
}

// decoder expands texts in the same way.
type decoder struct {
	*zstd.Decoder
	buffer
}

// buffer is what was returned last, to be used again.
type buffer []byte

func (b *buffer) keep(last []byte) {
	if *b = last[:0]; cap(last) > maxBuffer {
		*b = nil
	}
}

const (
	// maxDictionary bounds the JSON in a dictionary, in bytes. More does not make the others much smaller.
	maxDictionary = 16 << 10
	// period is how many texts show how well a dictionary compresses. The first ones of a kind have none: there may be no
	// more.
	period = 64
	// trialEvery is the most texts from one trial to the next.
	trialEvery = 1000
	// window is how far back a compressed text can refer, in bytes. An encoder takes memory in proportion to it.
	window = 64 << 10
	// maxBuffer bounds a buffer that is kept, in bytes.
	maxBuffer = 64 << 10
	// maxFresh bounds the texts that are not compressed yet, in bytes, and freshFor the time until they are.
	maxFresh = 2 << 20
	freshFor = 3 * time.Second
)

// put keeps the JSON of an object of a kind in its text. The caller does not change it any more.
func (t *Texts) put(kind schema.GroupVersionKind, json []byte, in *text) {
	in.Store(&stored{nil, json})
	t.freshMu.Lock()
	if len(t.fresh) == 0 {
		t.timer = time.AfterFunc(freshFor, t.compressFresh)
	}
	t.fresh = append(t.fresh, freshText{weak.Make(in), kind})
	t.bytes += len(json)
	full := t.bytes > maxFresh
	t.freshMu.Unlock()
	if full {
		t.compressFresh()
	}
}

// compressFresh compresses what is not compressed yet. One after another takes a tenth of the time that each of them
// takes between other work: an encoder has tables of half a megabyte.
func (t *Texts) compressFresh() {
	t.freshMu.Lock()
	if t.timer != nil {
		t.timer.Stop()
	}
	fresh := t.fresh
	t.fresh, t.bytes = nil, 0
	t.freshMu.Unlock()
	for _, f := range fresh {
		if text := f.text.Value(); text != nil {
			text.Store(t.compress(f.kind, text.Load().bytes))
		}
	}
}

// compress compresses the JSON of an object of a kind.
func (t *Texts) compress(kind schema.GroupVersionKind, json []byte) *stored {
	d := t.dictionaryFor(kind, json)
	e := d.encoders.Get().(*encoder)
	defer d.encoders.Put(e)
	compressed := e.EncodeAll(json, e.buffer)
	e.keep(compressed)
	t.note(kind, d, float64(len(compressed))/float64(max(1, len(json))))
	return &stored{d, bytes.Clone(compressed)}
}

// note notes the relative size of a text. At the end of a trial, a dictionary has to be better by a tenth to stay:
// previous ones are kept as long as their texts.
func (t *Texts) note(kind schema.GroupVersionKind, d *dictionary, size float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[kind]
	if k == nil || k.dictionary != d {
		return
	}
	k.size += size
	if k.of++; k.of < period {
		return
	}
	if k.before != nil && k.size > 0.9*k.sizeBefore {
		k.dictionary = k.before
	} else {
		k.sizeBefore = k.size
	}
	k.before, k.size, k.of = nil, 0, 0
}

// dictionaryFor is the dictionary for an object of a kind. A part of an object is none, since a status comes last.
func (t *Texts) dictionaryFor(kind schema.GroupVersionKind, json []byte) *dictionary {
	if kind.Group == "" && kind.Kind == "Secret" { // a dictionary stays in memory after its object is deleted
		return t.plain
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[kind]
	if k == nil {
		k = &kindTexts{dictionary: t.plain}
		t.kinds[kind] = k
	}
	k.compressed++
	if k.sizeBefore > 0 && k.before == nil && k.compressed >= k.nextTrial && len(json) <= maxDictionary {
		k.before, k.dictionary, k.size, k.of = k.dictionary, newDictionary(json), 0, 0
		k.nextTrial = k.compressed + min(k.compressed, trialEvery)
	}
	return k.dictionary
}

func newDictionary(json []byte) *dictionary {
	const id = 1 // any but 0
	d := &dictionary{json: bytes.Clone(json)}
	encoding := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window),
		zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false)}
	decoding := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true)}
	if len(json) > 0 {
		encoding, decoding = append(encoding, zstd.WithEncoderDictRaw(id, d.json)),
			append(decoding, zstd.WithDecoderDictRaw(id, d.json))
	}
	d.encoders.New = func() any { return &encoder{Encoder: must(zstd.NewWriter(nil, encoding...))} }
	d.decoders.New = func() any { return &decoder{Decoder: must(zstd.NewReader(nil, decoding...))} }
	return d
}

func must[T any](made T, err error) T {
	if err != nil {
		panic("preparing a compression: " + err.Error()) // the options are constants, and any bytes are a dictionary
	}
	return made
}

// object reads the JSON.
func (t *text) object() (map[string]any, error) {
	s := t.Load()
	switch {
	case s == nil:
		// internal: nobody asks for it
		return nil, errors.New("an object that does not meet watch.matchConditions was to be read")
	case s.dictionary == nil:
		return decodeObject(s.bytes)
	}
	d := s.dictionary.decoders.Get().(*decoder)
	defer s.dictionary.decoders.Put(d)
	plain, err := d.DecodeAll(s.bytes, d.buffer)
	d.keep(plain)
	if err != nil {
		return nil, err
	}
	return decodeObject(plain)
}
