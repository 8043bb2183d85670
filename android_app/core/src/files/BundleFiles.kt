package org.ondeviceprofiler.core

import java.io.IOException
import java.nio.file.FileSystemException
import java.nio.file.Files
import java.nio.file.NoSuchFileException
import java.nio.file.Path
import java.security.MessageDigest

internal const val MANIFEST: String = "bundle.json"
private const val MOST_RECORD_BYTES = 64L * 1024 * 1024
private const val CHUNK_BYTES = 1024 * 1024

/** Return the path of a file in a folder. Throws InvalidRecord where it would lead outside or is a link. */
public fun inside(folder: Path, relative: String): Path {
    val parts = relative.split('/').filter { it.isNotEmpty() && it != "." }
    if (parts.isEmpty() || relative.startsWith('/') || ".." in parts || relative.any { it in "\\:\u0000" }) {
        throw InvalidRecord("$folder: unsafe path '$relative' in the manifest")
    }
    return parts.fold(folder) { path, part -> path.resolve(part).also(::refuseLink) }
}

private fun refuseLink(path: Path) {
    if (Files.isSymbolicLink(path)) throw InvalidRecord("$path is a link; a bundle holds plain files only")
}

/** Hash a file in chunks; lower-case hex. Throws IOException. */
internal fun sha256Of(path: Path): String {
    val digest = MessageDigest.getInstance("SHA-256")
    val chunk = ByteArray(CHUNK_BYTES)
    Files.newInputStream(path).use { stream ->
        while (true) {
            val count = stream.read(chunk)
            if (count < 0) return hex(digest.digest())
            digest.update(chunk, 0, count)
        }
    }
}

/** Return bytes as lower-case hex. */
internal fun hex(bytes: ByteArray): String =
    bytes.joinToString("") { (it.toInt() and 0xFF).toString(16).padStart(2, '0') }

/** Read a bundle's manifest. Throws Refusal where there is none, or none that can be read. */
internal fun loadManifest(folder: Path): Bundle {
    val path = folder.resolve(MANIFEST)
    if (!Files.isRegularFile(path)) throw Refusal("$folder holds no bundle: no $MANIFEST there")
    val size = Files.size(inside(folder, MANIFEST))
    if (size > MOST_RECORD_BYTES) {
        throw InvalidRecord("$path: $size bytes long; a record of its kind has up to $MOST_RECORD_BYTES")
    }
    return decode(Files.readAllBytes(path), "Bundle", path.toString(), Bundle::read)
}

/** Say what a file system complained of, without the path. */
internal fun reasonOf(error: IOException): String =
    when (error) {
        is NoSuchFileException -> "No such file or directory: ${error.file}"
        is FileSystemException -> error.reason ?: error.toString()
        else -> error.message ?: error.toString()
    }
