package org.ondeviceprofiler.core

import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.FloatBuffer
import java.nio.IntBuffer

/** Numbers in a direct buffer in the machine's byte order, row-major: engines read and write them without a copy. */
public class Tensor private constructor(
    public val dtype: DType,
    public val shape: List<Int>,
    private val bytes: ByteBuffer,
) {
    /** All its bytes, from the first to the last. */
    public val data: ByteBuffer get() = bytes.duplicate().order(ByteOrder.nativeOrder())

    /** Its elements. Throws IllegalStateException where it holds integers. */
    public val floats: FloatBuffer
        get() = if (dtype == DType.FLOAT32) data.asFloatBuffer() else error("a tensor of ${dtype.word}")

    /** Its elements. Throws IllegalStateException where it holds reals. */
    public val ints: IntBuffer
        get() = if (dtype == DType.INT32) data.asIntBuffer() else error("a tensor of ${dtype.word}")

    /** Return a row along the first axis, on the same memory. */
    internal fun row(index: Int): Tensor {
        check(shape.isNotEmpty()) { "a single number has no rows" }
        val size = bytes.capacity() / shape[0]
        val part = bytes.duplicate()
        part.position(index * size)
        part.limit((index + 1) * size)
        return Tensor(dtype, shape.drop(1), part.slice())
    }

    public companion object {
        /** Make a tensor of zeros, for others to fill. Throws IllegalArgumentException where it cannot be addressed. */
        public fun allocate(dtype: DType, shape: List<Int>): Tensor {
            val size = shape.fold(4L) { product, length -> Math.multiplyExact(product, length.toLong()) }
            require(size in 0..Int.MAX_VALUE) { "a tensor of the shape $shape has $size bytes" }
            return Tensor(dtype, shape, ByteBuffer.allocateDirect(size.toInt()))
        }

        /** Make a tensor of these numbers. */
        public fun of(values: FloatArray, vararg shape: Int): Tensor =
            allocate(DType.FLOAT32, shape.toList()).also { it.floats.put(values) }

        /** Make a tensor of these numbers. */
        public fun of(values: IntArray, vararg shape: Int): Tensor =
            allocate(DType.INT32, shape.toList()).also { it.ints.put(values) }
    }
}
