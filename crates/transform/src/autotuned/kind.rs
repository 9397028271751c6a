//! How the expressions of a kernel depend on the tiles that are tuned.

/// A set of tiles, one bit for each.
pub(super) type Tiles = u32;

/// A value that depends on the element: data, an address, a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct At {
    /// The tiles whose first element is a summand of the value, as in `pid * B`.
    pub(super) starts: Tiles,
    /// The tiles whose lanes are a summand, as in `arange(0, B)`.
    pub(super) lanes: Tiles,
    /// The lanes among these that may be beyond the size.
    pub(super) free: Tiles,
    /// The pointers that the value is computed from, one bit for each parameter.
    pub(super) roots: u64,
    /// Whether the value depends on loaded data.
    pub(super) is_data: bool,
}

/// The kind of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// The value is the same for all tiles and elements.
    Constant,
    At(At),
    /// The number of tiles along one size, or the product of several such numbers.
    Count(Option<usize>),
    /// The index of a tile: multiplied with one of these tile sizes, it is the offset of the tile's first element.
    Index(Tiles),
}

impl At {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            starts: self.starts | other.starts,
            lanes: self.lanes | other.lanes,
            free: self.free | other.free,
            roots: self.roots | other.roots,
            is_data: self.is_data || other.is_data,
        }
    }

    /// Whether the value is the same however the elements are divided into tiles; `of_grid` are the tiles in which
    /// programs are counted.
    pub(super) fn is_whole(self, of_grid: Tiles) -> bool {
        self.starts & !self.lanes == 0 && self.lanes & of_grid & !self.starts == 0
    }
}

impl Kind {
    /// The kind of a value computed from two others; `None` where a tile index would get another meaning.
    pub(super) fn and(self, other: Self) -> Option<Self> {
        Some(match (self, other) {
            (Self::Constant, Self::Constant) => Self::Constant,
            (Self::At(one), Self::At(other)) => Self::At(one.and(other)),
            (Self::At(at), Self::Constant) | (Self::Constant, Self::At(at)) => Self::At(at),
            (Self::Index(one), Self::Index(other)) => Self::Index(one & other),
            (Self::Index(tiles), Self::Constant | Self::Count(_))
            | (Self::Constant | Self::Count(_), Self::Index(tiles)) => Self::Index(tiles),
            (Self::Count(_), Self::Count(_) | Self::Constant) | (Self::Constant, Self::Count(_)) => Self::Count(None),
            (Self::At(_), Self::Index(_) | Self::Count(_)) | (Self::Index(_) | Self::Count(_), Self::At(_)) => {
                return None;
            }
        })
    }

    /// The element that the value depends on; `None` where it depends on a tile index.
    pub(super) fn at(self) -> Option<At> {
        match self {
            Self::Constant => Some(At::default()),
            Self::At(at) => Some(at),
            Self::Count(_) | Self::Index(_) => None,
        }
    }
}
