package org.ondeviceprofiler.core

import java.nio.file.Path

/** Where the files are that a host names; `root` is where the device's / is, in a virtual phone. */
internal class DeviceFiles(val storage: Path, private val root: Path) {
    /** Return a file's place: absolute on the device, or relative to the storage. */
    fun locate(path: String): Path =
        if (path.startsWith("/")) root.resolve(path.trimStart('/')) else storage.resolve(path)
}
