package org.ondeviceprofiler.core

/** A tensor that is left as it is. */
internal class TensorProduct(val tensor: Tensor) : Product
