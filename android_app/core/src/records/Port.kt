package org.ondeviceprofiler.core

/** A named tensor at a graph's boundary; `shape` is static. */
public data class Port(public val name: String, public val dtype: DType, public val shape: List<Int>) : Writable {
    /** The size of the tensor. */
    public val sizeBytes: Long get() = shape.fold(4L) { product, size -> product * size }

    override fun toJson(): JsonObject = jsonOf("name" to name, "dtype" to dtype, "shape" to shape)

    internal companion object {
        fun read(value: Value): Port =
            value.record {
                Port(need("name").text(), need("dtype").word(DType.entries), need("shape").list { int() })
            }
    }
}
