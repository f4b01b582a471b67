// PASSES: classify-nests,prepare-arguments
//
// What reads the constant %w alone, and what reads only that, moves to the branch. What also reads
// %x stays; so does what has more elements than it is made of, and what the program returns.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[W:[a-z0-9]+]]: memref<64xf32>
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<64xf32>
// CHECK:         scf.if
// CHECK:           affine.load %[[W]]
// CHECK:           math.sqrt
// CHECK:           affine.load
// CHECK:           arith.negf
// CHECK:         } {polyblocks.region = "preparation"}
// CHECK:         affine.for
// CHECK:           affine.load %[[X]]
// CHECK:         affine.for %{{.*}} = 0 to 8
// CHECK:           math.absf
// CHECK:         affine.for
// CHECK:           math.exp
func.func @main(%w: memref<64xf32> {polyblocks.arg = {role = "input", name = "w", dtype = "float32", shape = array<i64: 64>, strides = array<i64: 1>, constant = true, updates = -1 : i64}},
                %x: memref<64xf32> {polyblocks.arg = {role = "input", name = "x", dtype = "float32", shape = array<i64: 64>, strides = array<i64: 1>, constant = false, updates = -1 : i64}},
                %y: memref<64xf32> {polyblocks.arg = {role = "output", name = "y", dtype = "float32", shape = array<i64: 64>, strides = array<i64: 1>, constant = false, updates = -1 : i64}},
                %z: memref<8x64xf32> {polyblocks.arg = {role = "output", name = "z", dtype = "float32", shape = array<i64: 8, 64>, strides = array<i64: 64, 1>, constant = false, updates = -1 : i64}},
                %r: memref<64xf32> {polyblocks.arg = {role = "output", name = "r", dtype = "float32", shape = array<i64: 64>, strides = array<i64: 1>, constant = false, updates = -1 : i64}}) {
  %true = arith.constant true
  scf.if %true {
  } {polyblocks.region = "preparation"}
  %s = memref.alloc() : memref<64xf32>
  %n = memref.alloc() : memref<64xf32>
  %wide = memref.alloc() : memref<8x64xf32>
  affine.for %i = 0 to 64 {
    %a = affine.load %w[%i] : memref<64xf32>
    %b = math.sqrt %a : f32
    affine.store %b, %s[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    %a = affine.load %s[%i] : memref<64xf32>
    %b = arith.negf %a : f32
    affine.store %b, %n[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    %a = affine.load %x[%i] : memref<64xf32>
    %b = affine.load %n[%i] : memref<64xf32>
    %c = arith.addf %a, %b : f32
    affine.store %c, %y[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 8 { affine.for %j = 0 to 64 {
    %a = affine.load %w[%j] : memref<64xf32>
    %b = math.absf %a : f32
    affine.store %b, %wide[%i, %j] : memref<8x64xf32>
  } }
  affine.for %i = 0 to 8 { affine.for %j = 0 to 64 {
    %a = affine.load %wide[%i, %j] : memref<8x64xf32>
    %b = affine.load %x[%j] : memref<64xf32>
    %c = arith.mulf %a, %b : f32
    affine.store %c, %z[%i, %j] : memref<8x64xf32>
  } }
  affine.for %i = 0 to 64 {
    %a = affine.load %w[%i] : memref<64xf32>
    %b = math.exp %a : f32
    affine.store %b, %r[%i] : memref<64xf32>
  }
  return
}
