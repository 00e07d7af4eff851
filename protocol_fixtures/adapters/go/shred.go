// The kind shred.
package main

import (
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

func init() { kinds["shred"] = shred }

var leaves = map[string]arrow.DataType{
	"binary": arrow.BinaryTypes.Binary, "boolean": arrow.FixedWidthTypes.Boolean,
	"date": arrow.FixedWidthTypes.Date32, "double": arrow.PrimitiveTypes.Float64,
	"float": arrow.PrimitiveTypes.Float32, "int8": arrow.PrimitiveTypes.Int8,
	"int16": arrow.PrimitiveTypes.Int16, "int32": arrow.PrimitiveTypes.Int32,
	"int64": arrow.PrimitiveTypes.Int64, "string": arrow.BinaryTypes.String,
	"time": arrow.FixedWidthTypes.Time64us, "uuid": extensions.NewUUIDType(),
	"timestamp":           arrow.FixedWidthTypes.Timestamp_us,
	"timestamp_nanos":     arrow.FixedWidthTypes.Timestamp_ns,
	"timestamp_ntz":       &arrow.TimestampType{Unit: arrow.Microsecond},
	"timestamp_ntz_nanos": &arrow.TimestampType{Unit: arrow.Nanosecond},
}

// arrowType returns the type that NewShreddedVariantType takes for a shredding schema.
func arrowType(schema any) arrow.DataType {
	switch schema := schema.(type) {
	case nil:
		return arrow.Null
	case string:
		var precision, scale int32
		if _, err := fmt.Sscanf(schema, "decimal(%d,%d)", &precision, &scale); err == nil {
			return &arrow.Decimal128Type{Precision: precision, Scale: scale} // pqarrow writes no narrower ones
		}
		return leaves[schema]
	case object:
		if element, ok := schema["array"]; ok {
			return arrow.ListOf(arrowType(element))
		}
		fields := []arrow.Field{}
		for name, field := range schema["object"].(object) {
			fields = append(fields, arrow.Field{Name: name, Type: arrowType(field)})
		}
		return arrow.StructOf(fields...)
	}
	panic(fmt.Sprintf("%v is not a shredding schema", schema))
}

func shred(r request) object {
	kind := extensions.NewShreddedVariantType(arrowType(r.Input.Schema))
	builder := extensions.NewVariantBuilder(memory.DefaultAllocator, kind)
	for _, row := range read(r)["rows"].([]*cell) {
		if row == nil {
			builder.AppendNull()
		} else {
			builder.Append(row.Value)
		}
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: kind, Nullable: true}}, nil)
	file := must(os.CreateTemp("", "*.parquet"))
	writer := must(pqarrow.NewFileWriter(schema, file, nil, pqarrow.DefaultWriterProps()))
	column := builder.NewArray()
	must(0, writer.Write(array.NewRecordBatch(schema, []arrow.Array{column}, int64(column.Len()))))
	must(0, writer.Close())
	return object{"file": file.Name()}
}
