// An adapter for arrow-go, by WORKERS.md alone. This file answers cases of the kinds decode, encode, unshred and file.
package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/variant"
)

type object = map[string]any

type request struct {
	Number       int
	Kind, Folder string
	Options      object
	Input        struct {
		Metadata, Value, JSON, File, Column string
		Schema                              any
	}
}

type cell struct{ variant.Value }

func (c cell) MarshalJSON() ([]byte, error) {
	return json.Marshal(object{"$variant": []string{fmt.Sprintf("%x", c.Metadata().Bytes()), fmt.Sprintf("%x", c.Bytes())}})
}

// refusal is an error of the engine. Any other panic ends the worker, which is a crash.
type refusal struct{ error }

func must[T any](value T, err error) T {
	if err != nil {
		panic(refusal{err})
	}
	return value
}

var kinds = map[string]func(request) object{"decode": decode, "encode": encode, "unshred": read, "file": read}

func decode(r request) object {
	v := must(variant.New(must(hex.DecodeString(r.Input.Metadata)), must(hex.DecodeString(r.Input.Value))))
	return object{"json": string(must(json.Marshal(v)))}
}

func encode(r request) object {
	return object{"rows": []cell{{must(variant.ParseJSON(r.Input.JSON, false))}}}
}

func read(r request) object {
	file := must(os.Open(filepath.Join(r.Folder, r.Input.File)))
	defer file.Close()
	table := must(pqarrow.ReadTable(context.Background(), file, nil, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator))
	index := table.Schema().FieldIndices(cmp.Or(r.Input.Column, "v"))[0]
	rows := []*cell{}
	for _, chunk := range table.Column(index).Data().Chunks() {
		part, ok := chunk.(*extensions.VariantArray)
		if !ok { // the column is not annotated
			kind := must(extensions.NewVariantType(chunk.DataType()))
			part = array.NewExtensionArrayWithStorage(kind, chunk).(*extensions.VariantArray)
		}
		for i := range part.Len() {
			rows = append(rows, nil)
			if part.Storage().IsValid(i) { // part.IsValid(i) is false for Variant null, too
				rows[len(rows)-1] = &cell{must(part.Value(i))}
			}
		}
	}
	return object{"rows": rows}
}

func answer(r request) (found object) {
	defer func() {
		if cause := recover(); cause != nil {
			found = object{"number": r.Number, "outcome": "refused", "message": cause.(refusal).Error()}
		}
	}()
	if run, ok := kinds[r.Kind]; ok && len(r.Options) == 0 {
		return object{"number": r.Number, "outcome": "answered", "content": run(r)}
	}
	return object{"number": r.Number, "outcome": "not offered", "message": "arrow-go has nothing for " + r.Kind}
}

func main() {
	out, in := json.NewEncoder(os.Stdout), json.NewDecoder(os.Stdin)
	out.Encode(object{"ready": arrow.PkgVersion})
	for r := (request{}); in.Decode(&r) == nil; r = (request{}) {
		out.Encode(answer(r))
	}
}
